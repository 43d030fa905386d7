;;; reminderd-view.el --- What the daemon says, told and why  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `reminderd-explain', `reminderd-log' and `reminderd-health'.  Each is a
;; `special-mode' buffer that is filled when the daemon answers.  Bodies are
;; collapsed to the daemon's row and shown when the person asks for them.

;;; Code:

(require 'reminderd)
(require 'tabulated-list)

;;;; Rows and bodies

(defun reminderd-view-bodies (entries)
  "Return the bodies of ENTRIES, each under its label, for a person to read."
  (mapconcat (lambda (entry)
               (concat (propertize (format "  %s\n" (plist-get entry :label))
                                   'face 'bold)
                       (replace-regexp-in-string
                        "^" "    " (plist-get entry :body))
                       "\n"))
             entries ""))

(defun reminderd-view-row (entries)
  "Return the collapsed line that stands for ENTRIES."
  (let ((labels (delete-dups (mapcar (lambda (entry) (plist-get entry :label))
                                     entries))))
    (if (null (cdr (append entries nil)))
        (format "◇ 1 system reminder (%s)" (car labels))
      (format "◇ %d system reminders (%s)" (length entries)
              (string-join labels ", ")))))

;;;; Shared by the views

(defvar-local reminderd-view--session nil
  "The session that this view is about.")

(defun reminderd-view--choose ()
  "Return this buffer's session, or let the person choose one."
  (or reminderd-view--session
      reminderd-buffer-session
      (gethash (completing-read "Conversation: " reminderd--sessions nil t)
               reminderd--sessions)
      (user-error "No conversation is open")))

(defun reminderd-view--request (session method params buffer fill)
  "Send METHOD with PARAMS about SESSION; call FILL in BUFFER with the result."
  (let ((connection (reminderd--session-connection session)))
    (unless connection
      (user-error "%s" (or reminderd-away "The reminder daemon is away")))
    (reminderd--send
     connection method `(:session ,(reminderd-session-id session) ,@params)
     :success (lambda (result)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer (funcall fill result))))
     :failure (lambda (fault)
                (message "reminderd: %s" (plist-get fault :message))))))

(defun reminderd-view--open (name mode session)
  "Show the buffer NAME in MODE about SESSION and fill it."
  (with-current-buffer (get-buffer-create name)
    (funcall mode)
    (setq reminderd-view--session session)
    (revert-buffer)
    (pop-to-buffer (current-buffer))))

(defun reminderd-view--print (entries)
  "Print ENTRIES in this list."
  (setq tabulated-list-entries entries)
  (tabulated-list-print t))

;;;; Why a reminder speaks or is silent

(define-derived-mode reminderd-explain-mode tabulated-list-mode "Explain"
  "Why each reminder would speak or be silent now."
  (setq tabulated-list-format
        [("Reminder" 24 t) ("Speaks" 7 t) ("Tokens" 7 nil :right-align t)
         ("Next" 32 nil) ("Reason" 0 nil)])
  ;; A reason is a sentence, and all of it matters.
  (setq truncate-lines nil)
  (setq-local revert-buffer-function #'reminderd-explain--revert)
  (tabulated-list-init-header))

(defun reminderd-explain--revert (&rest _)
  "Ask the daemon anew."
  (reminderd-view--request
   reminderd-view--session 'reminder/explain nil (current-buffer)
   (lambda (result)
     (reminderd-view--print
      (mapcar (lambda (row)
                (list (plist-get row :id)
                      (vector (plist-get row :id)
                              (if (eq (plist-get row :speaks) t) "yes" "no")
                              (format "%s" (plist-get row :tokens))
                              (format "%s" (or (plist-get row :next) ""))
                              (plist-get row :reason))))
              (plist-get result :rows))))))

;;;###autoload
(defun reminderd-explain (session)
  "Show why each reminder of SESSION would speak or be silent now."
  (interactive (list (reminderd-view--choose)))
  (reminderd-view--open "*reminderd explain*" #'reminderd-explain-mode
                        session))

;;;; What was told

(defvar reminderd-log-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'reminderd-log-toggle)
    (define-key map (kbd "TAB") #'reminderd-log-toggle)
    map)
  "Keys of `reminderd-log-mode'.")

(define-derived-mode reminderd-log-mode tabulated-list-mode "Reminders"
  "What was told in a conversation, newest first.
\\<reminderd-log-mode-map>\\[reminderd-log-toggle] shows the bodies."
  (setq tabulated-list-format
        [("At" 20 t) ("Turn" 14 nil) ("Phase" 11 nil) ("Held" 5 nil)
         ("Told" 0 nil)])
  (setq-local revert-buffer-function #'reminderd-log--revert)
  (tabulated-list-init-header))

(defun reminderd-log--revert (&rest _)
  "Ask the daemon anew."
  (remove-overlays (point-min) (point-max) 'reminderd-bodies t)
  (reminderd-view--request
   reminderd-view--session 'reminder/history nil (current-buffer)
   (lambda (result)
     (reminderd-view--print
      (cl-loop for record across (plist-get result :records)
               when (> (length (plist-get record :entries)) 0)
               collect (reminderd-log--line record))))))

(defun reminderd-log--line (record)
  "Return the line of the log that shows RECORD."
  (list record
        (vector (format-time-string "%F %T" (/ (plist-get record :at) 1000))
                (plist-get record :turn)
                (plist-get record :phase)
                (if (eq (plist-get record :retained) t) "yes" "no")
                (propertize (reminderd-view-row (plist-get record :entries))
                            'face 'reminderd-row))))

(defun reminderd-log-toggle ()
  "Show or hide the bodies of the reminders on this line."
  (interactive)
  (let ((record (tabulated-list-get-id))
        (end (line-beginning-position 2)))
    (unless record (user-error "No reminders here"))
    (unless (cl-loop for overlay in (overlays-at (line-beginning-position))
                     when (overlay-get overlay 'reminderd-bodies)
                     return (progn (delete-overlay overlay) t))
      (let ((overlay (make-overlay (line-beginning-position) end)))
        (overlay-put overlay 'reminderd-bodies t)
        (overlay-put overlay 'after-string
                     (reminderd-view-bodies (plist-get record :entries)))))))

;;;###autoload
(defun reminderd-log (session)
  "Show what was told in SESSION, newest first."
  (interactive (list (reminderd-view--choose)))
  (reminderd-view--open "*reminderd log*" #'reminderd-log-mode session))

;;;; What works

(defvar reminderd-health-functions nil
  "Functions of no arguments that return lines for `reminderd-health'.
Each returns a list of (GOOD . TEXT).")

(define-derived-mode reminderd-health-mode special-mode "Health"
  "What works between Emacs and the reminder daemon."
  (setq-local revert-buffer-function #'reminderd-health--revert))

(defun reminderd-health--revert (&rest _)
  "Look anew, and once more when the daemon has introduced itself."
  (let ((connection (reminderd-connection))
        (buffer (current-buffer)))
    (reminderd-health--print connection)
    (when connection
      (reminderd--send connection 'session/list nil
                       :success (lambda (sessions)
                                  (when (buffer-live-p buffer)
                                    (with-current-buffer buffer
                                      (reminderd-health--print
                                       connection sessions))))))))

(defun reminderd-health--print (connection &optional sessions)
  "Print what is known of CONNECTION and the daemon's SESSIONS."
  (let ((inhibit-read-only t)
        (server (and connection
                     (plist-get (oref connection server) :serverInfo)))
        (program (car reminderd-command)))
    (erase-buffer)
    (pcase-dolist
        (`(,good . ,text)
         (append
          (list
           (cons t (format "Emacs %s, client %s" emacs-version
                           reminderd-version))
           (cons (executable-find program)
                 (format "command: %s (%s)" (string-join reminderd-command " ")
                         (or (executable-find program) "not found")))
           (cons server
                 (cond (server (format "daemon: %s %s"
                                       (plist-get server :name)
                                       (plist-get server :version)))
                       (connection "daemon: started, no answer yet")
                       (t (format "daemon: %s" (or reminderd-away
                                                   "not started")))))
           (cons (null reminderd-away)
                 (format "last trouble: %s" (or reminderd-away "none")))
           (cons reminderd-mode
                 (format "saved files are %sreported (reminderd-mode)"
                         (if reminderd-mode "" "not ")))
           (cons t (format "conversations: %d here, %s with the daemon"
                           (hash-table-count reminderd--sessions)
                           (if sessions (length sessions) "?"))))
          (apply #'append (mapcar #'funcall reminderd-health-functions))
          (mapcar (lambda (problem) (cons nil problem))
                  reminderd--problems)))
      (insert (if good "  ok  " "  --  ") text "\n"))
    (goto-char (point-min))))

;;;###autoload
(defun reminderd-health ()
  "Show whether Emacs and the reminder daemon work together."
  (interactive)
  (with-current-buffer (get-buffer-create "*reminderd health*")
    (reminderd-health-mode)
    (revert-buffer)
    (pop-to-buffer (current-buffer))))

(provide 'reminderd-view)
;;; reminderd-view.el ends here
