;;; reminderd.el --- System reminders for language models  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The reminderd developers

;; Author: The reminderd developers
;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `reminderd' is a daemon that owns the system reminders of language models:
;; open tasks, files that changed, problems that an edit caused.  This is its
;; client for Emacs.  It holds no policy: it reports what happens, asks before
;; each request to a model what the model should hear, and says whether that
;; arrived.
;;
;; A host of conversations uses it like this:
;;
;;   (setq session (reminderd-open "my-chat-1" :root default-directory))
;;   (reminderd-begin-turn session "turn-1")
;;   (reminderd-wait session #'continue)     ; calls (continue DELIVERY)
;;   (reminderd-commit delivery)             ; the payload holds the message
;;   (reminderd-end-turn session "completed")
;;
;; None of these blocks.  `reminderd-wait' calls back within
;; `reminderd-deadline', with nil when the daemon is dead, slow or absent.
;;
;; `reminderd-mode' shows a count in the mode line and reports saved files.
;; `reminderd-explain' says of each reminder why it speaks or is silent,
;; `reminderd-log' shows what was told, `reminderd-health' what works.
;; reminderd-gptel.el serves gptel's chats, reminderd-flymake.el and
;; reminderd-flycheck.el report problems.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'url-util)
(require 'reminderd-connection)

;; For those who load this file and no package's autoloads.
(autoload 'reminderd-explain "reminderd-view" nil t)
(autoload 'reminderd-log "reminderd-view" nil t)
(autoload 'reminderd-health "reminderd-view" nil t)

(cl-defstruct (reminderd-session (:constructor reminderd--make-session)
                                 (:copier nil))
  "A conversation.
ID names it to the daemon, ROOT is its directory, HOST what its host
does, RECORDS a function that returns the records its history holds.
TURN is the open turn, CONNECTION the connection that knows of it,
FAULT why the daemon would not open it, HISTORY the ids of the records
that the daemon takes history to hold, COUNT how many reminders that are."
  id root host records turn connection fault history (count 0))

(defvar reminderd--sessions (make-hash-table :test #'equal)
  "The open sessions by their ids.")

(defvar-local reminderd-buffer-session nil
  "The session that this buffer shows.")

(defvar reminderd--problems nil
  "The last errors that answered events, newest first, for the health view.")

;;;; Sessions and turns

(cl-defun reminderd-open (id &key root host records)
  "Open the session ID and return it; an open one is returned as it is.
ROOT is the directory of its workspace, HOST a plist of what the
host does, RECORDS a function of no arguments that returns the
injection records in its history."
  (or (gethash id reminderd--sessions)
      (let ((session (reminderd--make-session
                      :id id :root root :host host :records records)))
        (puthash id session reminderd--sessions)
        (reminderd--session-connection session)
        session)))

(defun reminderd-close (session)
  "Close SESSION.  What it was told is kept."
  (remhash (reminderd-session-id session) reminderd--sessions)
  (when (reminderd-connection 'running)
    (reminderd-report session 'session/close)))

(defun reminderd--session-connection (session)
  "Return a connection on which SESSION is open, nil when there is none.
A daemon that is new to SESSION is told of it first, and of its open
turn, so that a conversation goes on after the daemon was restarted."
  (let ((connection (reminderd-connection)))
    (unless (or (null connection)
                (eq connection (reminderd-session-connection session)))
      (setf (reminderd-session-connection session) connection
            (reminderd-session-fault session) nil)
      (reminderd--send connection 'session/open
                       (reminderd--opening session)
                       :failure (lambda (fault)
                                  (setf (reminderd-session-fault session)
                                        (plist-get fault :message))))
      (when (reminderd-session-turn session)
        ;; A shared daemon that lived on still has it open, and refuses.
        (reminderd--send connection 'turn/begin
                         (list :session (reminderd-session-id session)
                               :turn (reminderd-session-turn session)))))
    connection))

(defun reminderd--opening (session)
  "Return the params that open SESSION."
  (let ((records (and (reminderd-session-records session)
                      (funcall (reminderd-session-records session)))))
    (setf (reminderd-session-history session)
          (mapcar (lambda (record) (plist-get record :id)) records))
    (append
     (list :session (reminderd-session-id session))
     (when (reminderd-session-root session)
       (list :root (reminderd-uri (reminderd-session-root session))))
     (when (reminderd-session-host session)
       (list :host (reminderd-session-host session)))
     (when (reminderd-session-records session)
       (list :records (vconcat records))))))

(defun reminderd-report (session method &rest params)
  "Report METHOD with PARAMS, a plist without the scope, about SESSION."
  (let ((connection (reminderd--session-connection session)))
    (when connection
      (reminderd--send connection method
                       `(:session ,(reminderd-session-id session) ,@params)
                       :failure (lambda (fault)
                                  (reminderd--note-problem method fault))))))

(defun reminderd--note-problem (method fault)
  "Keep that METHOD was answered with FAULT."
  (setq reminderd--problems
        (seq-take (cons (format "%s: %s" method (plist-get fault :message))
                        reminderd--problems)
                  5)))

(defun reminderd-begin-turn (session turn)
  "Begin the turn named TURN in SESSION."
  (reminderd--session-connection session)
  (setf (reminderd-session-turn session) turn)
  (reminderd-report session 'turn/begin :turn turn))

(defun reminderd-end-turn (session turn outcome)
  "End TURN of SESSION with OUTCOME.
That is \"completed\", \"cancelled\" or \"failed\".  A turn that a later
one has taken the place of is over already."
  (when (equal turn (reminderd-session-turn session))
    (reminderd-report session 'turn/end :turn turn :outcome outcome)
    (setf (reminderd-session-turn session) nil)))

(defun reminderd-report-history (session ids)
  "Say that the payload of SESSION holds exactly the records IDS."
  (unless (equal ids (reminderd-session-history session))
    (setf (reminderd-session-history session) ids)
    (reminderd-report session 'history/reported :records (vconcat ids))))

;;;; Asking

(cl-defstruct (reminderd--pending (:constructor reminderd--make-pending)
                                  (:copier nil))
  "A request whose CALLBACK has not been called.
CALLBACK is nil once it was, or is not to be called any more.  TIMER
is that of the deadline; once there is an ANSWER, a list of it, that
of the call.  LATE takes a result that nobody waits for."
  callback timer connection id answer late)

(cl-defun reminderd-ask (session method params callback
                                 &key (success #'identity) late)
  "Ask METHOD with PARAMS about SESSION, and call CALLBACK.
CALLBACK is called once, later, with what SUCCESS makes of the result,
or with nil when there is none within `reminderd-deadline'.  LATE is
called with a result that comes after that.  Return what
`reminderd-cancel' takes."
  (let* ((pending (reminderd--make-pending :callback callback
                                           :late (or late #'ignore)))
         (connection (reminderd--session-connection session)))
    (if (null connection)
        (reminderd--settle pending nil)
      (setf (reminderd--pending-connection pending) connection
            (reminderd--pending-timer pending)
            (run-at-time reminderd-deadline nil
                         #'reminderd--miss-deadline pending)
            (reminderd--pending-id pending)
            (reminderd--send
             connection method
             `(:session ,(reminderd-session-id session) ,@params)
             :success (lambda (result)
                        (if (reminderd--waiting-p pending)
                            (reminderd--settle pending
                                               (funcall success result))
                          (funcall (reminderd--pending-late pending)
                                   result)))
             :failure (lambda (fault)
                        (when (reminderd--waiting-p pending)
                          (reminderd--refused session fault)
                          (reminderd--settle pending nil))))))
    pending))

(defun reminderd--waiting-p (pending)
  "Return non-nil when an answer to PENDING is still wanted."
  (and (reminderd--pending-callback pending)
       (null (reminderd--pending-answer pending))))

(defun reminderd--settle (pending answer)
  "Have PENDING's callback called with ANSWER, outside of process filters."
  (when (reminderd--pending-timer pending)
    (cancel-timer (reminderd--pending-timer pending)))
  (setf (reminderd--pending-answer pending) (list answer)
        (reminderd--pending-timer pending)
        (run-at-time 0 nil #'reminderd--call pending)))

(defun reminderd--call (pending)
  "Call the callback of PENDING with its answer."
  (let ((callback (reminderd--pending-callback pending)))
    (setf (reminderd--pending-callback pending) nil)
    (funcall callback (car (reminderd--pending-answer pending)))))

(defun reminderd--miss-deadline (pending)
  "Go on without an answer to PENDING."
  (reminderd--away (format "The reminder daemon did not answer within %s s"
                           reminderd-deadline))
  (reminderd--settle pending nil)
  (reminderd--cancel (reminderd--pending-connection pending)
                     (reminderd--pending-id pending)))

(defun reminderd--refused (session fault)
  "Tell the person that a request of SESSION failed with FAULT."
  ;; The process ended, which is told; the request was cancelled, its turn is
  ;; over, or a newer WAIT has overtaken it, which is nobody's fault.
  (unless (memql (plist-get fault :code) '(-1 -32800 -33004 -33008))
    (reminderd--away (format "The reminder daemon refused: %s"
                             (or (reminderd-session-fault session)
                                 (plist-get fault :message))))))

(defun reminderd-cancel (pending)
  "Cancel PENDING, which `reminderd-wait' or `reminderd-ask' returned.
Its callback is not called; a delivery that is there or still comes is
released."
  (when (reminderd--pending-callback pending)
    (setf (reminderd--pending-callback pending) nil)
    (cancel-timer (reminderd--pending-timer pending))
    (pcase (reminderd--pending-answer pending)
      ('nil (reminderd--cancel (reminderd--pending-connection pending)
                               (reminderd--pending-id pending)))
      (`(,(and answer (pred identity)))
       (funcall (reminderd--pending-late pending) answer)))))

;;;; The WAIT

(defun reminderd-wait (session callback &rest params)
  "Ask what the model of SESSION should hear, and call CALLBACK.
CALLBACK is called once, later, with the delivery, a plist, or with
nil when there is none within `reminderd-deadline'.  PARAMS go along
with the request.  Return what `reminderd-cancel' takes."
  (reminderd-ask session 'reminder/wait
                 ;; The daemon leaves out what it cannot say in time.
                 `(:deadlineMs ,(floor (* 800 reminderd-deadline)) ,@params)
                 callback
                 :success (lambda (result)
                            (let ((delivery (reminderd--delivery result)))
                              (when delivery (reminderd--back))
                              delivery))
                 :late (lambda (result)
                         (let ((delivery (reminderd--delivery result)))
                           (when delivery (reminderd-release delivery))))))

(defun reminderd--delivery (result)
  "Return RESULT if it is a delivery, else tell the person that it is not."
  (if (and (listp result) (stringp (plist-get result :token)))
      result
    (reminderd--away "The reminder daemon gave no delivery")
    nil))

(cl-defun reminderd-commit (delivery &key placement then)
  "Say that the payload that is about to be sent holds DELIVERY's message.
PLACEMENT says where it was put.  THEN is called with the record of
what was told, nil when that is nothing."
  (let ((connection (reminderd-connection 'running))
        (params `(:token ,(plist-get delivery :token)
                  ,@(when placement (list :placement placement)))))
    (when connection
      (cl-labels
          ((commit (again)
             (reminderd--send
              connection 'reminder/commit params
              :success (lambda (result)
                         (when then
                           (run-at-time 0 nil then
                                        (plist-get result :record))))
              :failure (lambda (fault)
                         ;; The store failed and nothing was told: the same
                         ;; commit may be sent again.
                         (if (and again
                                  (eql (plist-get fault :code) -33010))
                             (commit nil)
                           (reminderd--note-problem 'reminder/commit
                                                    fault))))))
        (commit t)))))

(defun reminderd-release (delivery &optional reason)
  "Say that DELIVERY's message never came to be, for REASON."
  (let ((connection (reminderd-connection 'running)))
    (when connection
      (reminderd--send connection 'reminder/release
                       `(:token ,(plist-get delivery :token)
                         ,@(when reason (list :reason reason)))))))

(defun reminderd-record-content (record)
  "Return the message of RECORD, as its delivery gave it."
  (let ((bodies (mapcar (lambda (entry) (plist-get entry :body))
                        (plist-get record :entries)))
        (block (lambda (text)
                 (concat "<system-reminder>\n" text "\n</system-reminder>"))))
    (when bodies
      (pcase (plist-get record :form)
        ("blocks" (mapconcat block bodies "\n"))
        ("block" (funcall block (string-join bodies "\n\n")))
        (_ (string-join bodies "\n\n"))))))

;;;; Files

(defun reminderd-uri (file)
  "Return the `file:' URI of FILE."
  (concat "file://"
          (and (eq system-type 'windows-nt) "/")
          (url-hexify-string (expand-file-name file)
                             (cons ?/ url-unreserved-chars))))

(defvar reminderd--version (floor (- (float-time) 1577836800))
  "The last version number given to a text.
It begins with the seconds since 2020, so that versions rise from one
Emacs to the next.")

(defvar-local reminderd--versioned nil
  "The version of this buffer and the tick at which it was given.")

(defun reminderd-version (&optional buffer)
  "Return the version of BUFFER's text, which rises whenever that changes."
  (with-current-buffer (or buffer (current-buffer))
    (let ((tick (buffer-chars-modified-tick)))
      (unless (eql tick (cdr reminderd--versioned))
        (setq reminderd--versioned (cons (cl-incf reminderd--version) tick)))
      (car reminderd--versioned))))

(defun reminderd-file-version (file)
  "Return the version of the buffer that visits FILE, nil without one."
  (let ((buffer (find-buffer-visiting file)))
    (and buffer (reminderd-version buffer))))

(defun reminderd-publish (checker state &optional diagnostics version)
  "Report that CHECKER is in STATE about this buffer's file.
STATE is \"running\", \"done\" with DIAGNOSTICS, a list in LSP's form,
or \"failed\".  VERSION is that of the text that was checked.  Nothing
is reported when no conversation is open."
  (let ((connection (and (reminderd--reportable-p)
                         (reminderd-connection 'running))))
    (when connection
      (reminderd--send connection 'diagnostic/publish
                       `(:uri ,(reminderd-uri buffer-file-name)
                         :version ,(or version (reminderd-version))
                         :checker ,checker
                         :state ,state
                         ,@(when (equal state "done")
                             (list :diagnostics (vconcat diagnostics))))))))

(defun reminderd-position (position)
  "Return POSITION in LSP's form: lines from 0, characters in UTF-16 units."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char position)
      (list :line (1- (line-number-at-pos nil t))
            :character (/ (string-bytes
                           (encode-coding-string
                            (buffer-substring-no-properties
                             (line-beginning-position) (point))
                            'utf-16le))
                          2)))))

(defun reminderd--reportable-p ()
  "Return non-nil when this buffer's file may concern a conversation."
  (and buffer-file-name
       (not (file-remote-p buffer-file-name))
       (> (hash-table-count reminderd--sessions) 0)))

(defvar reminderd-agent-at-work nil
  "Non-nil while a tool of an agent runs, so that a save is not the person's.")

(defconst reminderd--document-bytes 262144
  "Largest file whose text is sent when it is saved.")

(defun reminderd--report-save ()
  "Report that this buffer's file was saved, and by whom if it is known."
  ;; Whatever happens here, the file has been saved.
  (with-demoted-errors "reminderd: %S"
    (let ((connection (and (reminderd--reportable-p)
                           (reminderd-connection 'running))))
      (cond
       ((null connection))
       ((or reminderd-agent-at-work
            (> (buffer-size) reminderd--document-bytes))
        (reminderd--report-changed-file connection))
       (t (reminderd--report-saved-document connection))))))

(defun reminderd--report-changed-file (connection)
  "Report over CONNECTION that somebody changed this buffer's file."
  (reminderd--send connection 'workspace/didChangeWatchedFiles
                   `(:changes [(:uri ,(reminderd-uri buffer-file-name)
                                :type 2)])))

(defun reminderd--report-saved-document (connection)
  "Report over CONNECTION that the person changed and saved this file."
  (let ((uri (reminderd-uri buffer-file-name))
        (version (reminderd-version)))
    (reminderd--send connection 'textDocument/didOpen
                     (list :textDocument
                           (list :uri uri
                                 :languageId (string-remove-suffix
                                              "-mode"
                                              (symbol-name major-mode))
                                 :version version
                                 :text (save-restriction
                                         (widen)
                                         (buffer-substring-no-properties
                                          (point-min) (point-max))))))
    (reminderd--send connection 'textDocument/didChange
                     `(:textDocument (:uri ,uri :version ,version)
                       :contentChanges []))
    (reminderd--send connection 'textDocument/didSave
                     `(:textDocument (:uri ,uri)))
    (reminderd--send connection 'textDocument/didClose
                     `(:textDocument (:uri ,uri)))))

;;;; The mode line

(defface reminderd-row '((t :inherit shadow))
  "Face of the collapsed line that stands for a message of reminders."
  :group 'reminderd)

(defconst reminderd--mode-line '(:eval (reminderd--mode-line))
  "What command `reminderd-mode' adds to `mode-line-misc-info'.")

(defun reminderd--mode-line ()
  "Return how many reminders this buffer's conversation holds."
  (when reminderd-buffer-session
    (if reminderd-away
        (propertize " ◇!" 'face 'warning 'help-echo reminderd-away)
      (format " ◇%d" (reminderd-session-count reminderd-buffer-session)))))

;;;###autoload
(define-minor-mode reminderd-mode
  "Report saved files to the reminder daemon and show a count.
The mode line of a conversation shows how many system reminders it
holds, or `!' when the daemon gives none."
  :global t
  :group 'reminderd
  (if reminderd-mode
      (progn
        (add-hook 'after-save-hook #'reminderd--report-save)
        (add-to-list 'mode-line-misc-info reminderd--mode-line t))
    (remove-hook 'after-save-hook #'reminderd--report-save)
    (setq mode-line-misc-info
          (delete reminderd--mode-line mode-line-misc-info))))

(provide 'reminderd)
;;; reminderd.el ends here
