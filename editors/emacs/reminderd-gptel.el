;;; reminderd-gptel.el --- System reminders in gptel's chats  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; In a chat of gptel, each request to the model first asks the daemon what the
;; model should hear.  The answer goes along as one user message in the form of
;; the request's backend, and stays in the chat as a collapsed row.
;;
;; Nothing of gptel is advised.  A prompt transform gives each request handlers
;; of its own: before the request goes out, around its tools, and at its end.
;; While the daemon is asked, `gptel-abort' works as it does later on.
;;
;; The transform also puts the messages that the chat keeps back in their
;; places.  It leaves marks in the prompt and fills them in when the payload
;; stands, so that no other transform, link or cookie acts on their text.
;;
;; gptel gives its hooks around tools no id of the call and runs them only for
;; `gptel-send', so calls are taken from the request's own state instead.

;;; Code:

(require 'cl-lib)
(require 'gptel)
(require 'reminderd)
(require 'reminderd-transcript)

(defgroup reminderd-gptel nil
  "System reminders in gptel's chats."
  :group 'reminderd)

(defcustom reminderd-gptel-tools
  '(("Read" . read) ("read_file" . read) ("view_file" . read)
    ("open_file" . read)
    ("Edit" . write) ("Write" . write) ("Insert" . write)
    ("edit_file" . write) ("write_file" . write) ("create_file" . write)
    ("replace_in_file" . write) ("insert_in_file" . write)
    ("TodoWrite" . tasks) ("write_todos" . tasks) ("update_tasks" . tasks))
  "What the tools of the model do, by their names.
`read' and `write' are done to the file that an argument names, see
`reminderd-gptel-file-arguments'; `tasks' replaces the list of tasks by
the argument `todos' or `tasks'.  Tools that are not listed are
reported as calls alone."
  :type '(alist :key-type string
                :value-type (choice (const read) (const write)
                                    (const tasks))))

(defcustom reminderd-gptel-file-arguments
  '(:file_path :filepath :path :filename :file)
  "Arguments of tools that name a file, the first that is given counts.
A `:filename' beside a `:path' is in that directory."
  :type '(repeat symbol))

(defcustom reminderd-gptel-range-arguments
  '(:start_line :end_line :offset :limit)
  "Arguments of reading tools with which a part of the file is read."
  :type '(repeat symbol))

(defvar reminderd-gptel-session-id nil
  "The id of this chat's session, kept in its file.")
;;;###autoload
(put 'reminderd-gptel-session-id 'safe-local-variable #'stringp)

(cl-defstruct (reminderd-gptel--request
               (:constructor reminderd-gptel--make-request)
               (:copier nil))
  "One request of gptel, tool calls and their results included.
SESSION is that of the chat and TURN the request's turn, which is
BEGUN with the first WAIT.  MARKS are lists (MARK RECORD) of messages
that are to be put into the payload, HELD the ids of the records that
it holds.  CALLS are the ids of the tool calls that are open."
  session turn begun marks held calls)

;;;; The session of a chat

(defun reminderd-gptel--session ()
  "Return the session of this chat, opening it when needed."
  (or reminderd-buffer-session
      (let ((chat (current-buffer)))
        (setq-local reminderd-gptel-session-id
                    (reminderd-gptel--unused-id
                     (or reminderd-gptel-session-id
                         (and (derived-mode-p 'org-mode)
                              (reminderd-gptel--org-id)))))
        (add-hook 'kill-buffer-hook #'reminderd-gptel--close nil t)
        (setq reminderd-buffer-session
              (reminderd-open
               reminderd-gptel-session-id
               :root (reminderd-gptel--root)
               :host '(:history "client" :receipts "immediate"
                                :render "tagged" :persists "client")
               :records (lambda ()
                          (and (buffer-live-p chat)
                               (with-current-buffer chat
                                 (reminderd-transcript-records)))))))))

(defun reminderd-gptel--unused-id (id)
  "Return ID if no other chat has it, else a new one."
  (if (and id (not (gethash id reminderd--sessions)))
      id
    (format "gptel-%s"
            (substring (secure-hash 'sha256
                                    (format "%s%s%s" (random) (float-time)
                                            (emacs-pid)))
                       0 16))))

(defun reminderd-gptel--root ()
  "Return the directory of the workspace that this chat is about."
  (unless (file-remote-p default-directory)
    (expand-file-name
     (or (locate-dominating-file default-directory ".git")
         default-directory))))

(defun reminderd-gptel--close ()
  "Close the session of this chat."
  (when reminderd-buffer-session
    (with-demoted-errors "reminderd-gptel: %S"
      (reminderd-close reminderd-buffer-session))
    (setq reminderd-buffer-session nil)))

(declare-function org-entry-get "org" (pom property &optional inherit
                                           literal-nil))
(declare-function org-entry-put "org" (pom property value))

(defun reminderd-gptel--org-id ()
  "Return the id that this Org file keeps."
  (save-restriction
    (widen)
    (org-entry-get (point-min) "REMINDERD_SESSION")))

(defun reminderd-gptel--save ()
  "Keep the id of this chat's session in its file."
  (when (and reminderd-buffer-session reminderd-gptel-session-id)
    ;; Whatever happens here, the file is to be saved.
    (with-demoted-errors "reminderd-gptel: %S"
      (save-excursion
        (save-restriction
          (widen)
          (if (derived-mode-p 'org-mode)
              (org-entry-put (point-min) "REMINDERD_SESSION"
                             reminderd-gptel-session-id)
            (add-file-local-variable 'reminderd-gptel-session-id
                                     reminderd-gptel-session-id)))))))

(defun reminderd-gptel--chat-opened ()
  "Show what this chat keeps, and open its session."
  (when gptel-mode
    (with-demoted-errors "reminderd-gptel: %S"
      (reminderd-transcript-show)
      (reminderd-gptel--session)
      (reminderd-gptel--count))))

(defun reminderd-gptel--count ()
  "Count the reminders that this chat keeps, for the mode line."
  (setf (reminderd-session-count reminderd-buffer-session)
        (cl-loop for record in (reminderd-transcript-records)
                 sum (length (plist-get record :entries))))
  (force-mode-line-update))

;;;; The prompt transform

(defun reminderd-gptel--transform (fsm)
  "Prepare the request FSM, whose prompt is in the current buffer."
  (let* ((info (gptel-fsm-info fsm))
         (chat (plist-get info :buffer)))
    (when (and (buffer-live-p chat)
               (buffer-local-value 'gptel-mode chat)
               ;; Answers that go elsewhere are no part of the conversation.
               (not (plist-get info :callback))
               (not (plist-get info :in-place)))
      (with-demoted-errors "reminderd-gptel: %S"
        (let ((request (reminderd-gptel--make-request
                        :session (with-current-buffer chat
                                   (reminderd-gptel--session))
                        :turn (format "%x-%x" (floor (float-time))
                                      (random #x10000000)))))
          (reminderd-gptel--mark request (plist-get info :dry-run))
          (setf (gptel-fsm-handlers fsm)
                (reminderd-gptel--handlers request
                                           (gptel-fsm-handlers fsm))))))))

(defun reminderd-gptel--mark (request dry-run)
  "Put a mark for each kept message of this prompt buffer into REQUEST.
A DRY-RUN shows the messages themselves, since nothing is sent."
  (let ((nonce (format "reminderd-%x" (random most-positive-fixnum)))
        (number 0))
    (pcase-dolist (`(,begin ,end) (nreverse (reminderd-transcript-regions)))
      (pcase-let* ((`(,kept ,from ,to) (reminderd-transcript-read begin end))
                   (record (plist-get kept :record))
                   (content (reminderd-record-content record))
                   (mark (if dry-run content
                           (format "%s-%d" nonce (cl-incf number))))
                   (before (buffer-substring-no-properties begin
                                                           (or from end)))
                   (after (and to
                               (buffer-substring-no-properties to end))))
        (goto-char begin)
        (delete-region begin end)
        ;; What was typed into the line is the person's.
        (insert before)
        (when content
          (insert (propertize "\n" 'gptel 'ignore)
                  mark
                  (propertize "\n" 'gptel 'ignore)))
        (when after (insert after))
        (when record
          (push (list (and content mark) record)
                (reminderd-gptel--request-marks request)))))
    (goto-char (point-max))))

(defun reminderd-gptel--fill-in (request data)
  "Put the messages of REQUEST at their marks in the payload DATA.
What the payload does not hold is not in the history any more."
  (pcase-dolist (`(,mark ,record) (reminderd-gptel--request-marks request))
    (let ((content (reminderd-record-content record)))
      (when (or (null content)
                (reminderd-gptel--substitute data mark content))
        (push (plist-get record :id)
              (reminderd-gptel--request-held request)))))
  (setf (reminderd-gptel--request-marks request) nil)
  (cl-callf nreverse (reminderd-gptel--request-held request)))

(defun reminderd-gptel--substitute (data mark content)
  "Replace the string MARK by CONTENT within DATA.
Return non-nil when it was there."
  (cond
   ((consp data)
    (cl-loop for cell on data
             thereis (if (equal (car cell) mark)
                         (setcar cell content)
                       (reminderd-gptel--substitute (car cell) mark
                                                    content))))
   ((vectorp data)
    (cl-loop for index below (length data)
             thereis (if (equal (aref data index) mark)
                         (aset data index content)
                       (reminderd-gptel--substitute (aref data index) mark
                                                    content))))))

;;;; The request's own handlers

(defun reminderd-gptel--handlers (request handlers)
  "Return gptel's HANDLERS with those of REQUEST around them."
  (let ((handlers (copy-alist handlers)))
    (cl-flet ((wrap (state function)
                    (let ((those (alist-get state handlers)))
                      (setf (alist-get state handlers)
                            (list (lambda (fsm)
                                    (reminderd-gptel--guard
                                     function request fsm those)))))))
      (wrap 'WAIT #'reminderd-gptel--wait)
      (wrap 'TOOL #'reminderd-gptel--begin-tools)
      (wrap 'TRET #'reminderd-gptel--end-tools)
      (wrap 'DONE (reminderd-gptel--ending "completed"))
      (wrap 'ERRS (reminderd-gptel--ending "failed"))
      (wrap 'ABRT (reminderd-gptel--ending "cancelled")))
    handlers))

(defun reminderd-gptel--guard (function request fsm handlers)
  "Call FUNCTION with REQUEST, FSM and what calls gptel's HANDLERS.
A fault of FUNCTION's own never keeps gptel from going on."
  (let* ((gone nil)
         (go-on (lambda ()
                  (setq gone t)
                  (dolist (handler handlers) (funcall handler fsm)))))
    (condition-case fault
        (funcall function request fsm go-on)
      (error
       (when gone (signal (car fault) (cdr fault)))
       (message "reminderd-gptel: %s" (error-message-string fault))
       (funcall go-on)))))

(defun reminderd-gptel--wait (request fsm go-on)
  "Ask what the model should hear, then call GO-ON to send REQUEST.
Until then FSM can be aborted, and then nothing is sent."
  (let* ((info (gptel-fsm-info fsm))
         (session (reminderd-gptel--request-session request))
         (first (not (reminderd-gptel--request-begun request))))
    (when first
      (setf (reminderd-gptel--request-begun request) t)
      (reminderd-gptel--fill-in request (plist-get info :data))
      (reminderd-begin-turn session (reminderd-gptel--request-turn request)))
    (reminderd-report-history session (reminderd-gptel--request-held request))
    (reminderd-gptel--await
     fsm
     (lambda (callback)
       (reminderd-wait session callback
                       :turn (reminderd-gptel--request-turn request)
                       :seam (if first "prompt" "tools")))
     (lambda (delivery)
       (cond
        ((null delivery))
        ;; The person has sent another request from this chat meanwhile.
        ((not (equal (reminderd-gptel--request-turn request)
                     (reminderd-session-turn session)))
         (reminderd-release delivery "the turn is over"))
        (t (reminderd-gptel--deliver request info delivery)))
       (funcall go-on))
     #'reminderd-release)))

(defun reminderd-gptel--await (fsm ask then otherwise)
  "Call ASK with a callback, and THEN with what that gets, in FSM's chat.
Until then `gptel-abort' cancels what ASK returned.  When the chat is
gone by then, OTHERWISE is called with what came, if anything did."
  (let* ((chat (plist-get (gptel-fsm-info fsm) :buffer))
         (entry (list 'reminderd))
         (pending (funcall ask
                           (lambda (answer)
                             (setf (alist-get entry gptel--request-alist
                                              nil 'remove)
                                   nil)
                             (if (buffer-live-p chat)
                                 (with-current-buffer chat
                                   (funcall then answer))
                               (when answer (funcall otherwise answer)))))))
    (setf (alist-get entry gptel--request-alist)
          (cons fsm (lambda () (reminderd-cancel pending))))))

(defun reminderd-gptel--deliver (request info delivery)
  "Put DELIVERY into the payload of REQUEST and into this chat.
INFO is gptel's state of the request.  What cannot be kept is not said."
  (let* ((message (plist-get delivery :message))
         (data (plist-get info :data))
         (before (copy-sequence data))
         (place (copy-marker (or (plist-get info :tracking-marker)
                                 (plist-get info :position)))))
    (condition-case fault
        (progn
          (when message
            (reminderd-gptel--inject (plist-get info :backend) data
                                     (plist-get message :content))
            (reminderd-gptel--keep request info place
                                   (plist-get delivery :record)
                                   (plist-get delivery :row)))
          (reminderd-commit
           delivery
           :placement "user message"
           :then (lambda (record)
                   ;; A record that tells nothing comes with the commit.
                   (when (and record (null message)
                              (marker-buffer place))
                     (with-current-buffer (marker-buffer place)
                       (reminderd-gptel--keep request info place record
                                              nil))))))
      (error
       (cl-loop for (key value) on before by #'cddr
                do (plist-put data key value))
       (reminderd-release delivery (error-message-string fault))))))

(defun reminderd-gptel--inject (backend data content)
  "Append CONTENT to DATA as a user message in BACKEND's own form."
  ;; Cache marks are gptel's to place, and their number is limited.
  (let ((gptel-cache nil))
    (gptel--inject-prompt backend data
                          (gptel--parse-list backend (list content)))))

(defun reminderd-gptel--keep (request info place record row)
  "Keep RECORD with its ROW at PLACE in this chat, and as REQUEST's.
What gptel inserts next, by the markers in INFO, comes behind it."
  (unless (and (eq (marker-buffer place) (current-buffer))
               (not buffer-read-only))
    (error "The chat cannot be written to"))
  (let ((markers (cl-loop for key in '(:position :tracking-marker)
                          for marker = (plist-get info key)
                          when (and marker (= marker place))
                          collect marker)))
    (save-excursion
      (save-restriction
        (widen)
        (goto-char place)
        (reminderd-transcript-insert record row)
        ;; A response that streams in after tools brings no line of its own.
        (when (plist-get info :tracking-marker) (insert "\n"))
        (dolist (marker markers) (set-marker marker (point)))))
    (let ((id (plist-get record :id)))
      (cl-callf append (reminderd-gptel--request-held request) (list id))
      (cl-callf append (reminderd-session-history
                        (reminderd-gptel--request-session request))
        (list id)))
    (reminderd-gptel--count)))

(defun reminderd-gptel--report-usage (request fsm)
  "Report how full the context of REQUEST in FSM is, where that is known."
  (let* ((info (gptel-fsm-info fsm))
         (tokens (plist-get info :tokens))
         (model (plist-get info :model))
         (window (and (symbolp model) (get model :context-window))))
    ;; gptel counts windows in thousands, and what was cached apart.
    (when (and tokens window)
      (reminderd-report (reminderd-gptel--request-session request)
                        'usage/report
                        :used (cl-loop for key in '(:input :cached :output)
                                       sum (or (plist-get tokens key) 0))
                        :usable (round (* 1000 window))))))

(defun reminderd-gptel--ending (outcome)
  "Return a handler that ends a request's turn with OUTCOME."
  (lambda (request fsm go-on)
    (funcall go-on)
    (reminderd-gptel--forget-calls request)
    (reminderd-gptel--report-usage request fsm)
    (reminderd-end-turn (reminderd-gptel--request-session request)
                        (reminderd-gptel--request-turn request)
                        outcome)))

;;;; Tools

(defvar reminderd-gptel--open-calls 0
  "How many tool calls are open in all chats.")

(defun reminderd-gptel--begin-tools (request fsm go-on)
  "Report the calls of REQUEST in FSM that begin, then GO-ON to run them.
Files that they are to change are looked at first, for what is wrong
with them already."
  (reminderd-gptel--report-usage request fsm)
  (let ((session (reminderd-gptel--request-session request))
        (files nil))
    (pcase-dolist (`(,call . ,id) (reminderd-gptel--calls fsm))
      (unless (or (plist-get call :result)
                  (member id (reminderd-gptel--request-calls request)))
        (push id (reminderd-gptel--request-calls request))
        (cl-incf reminderd-gptel--open-calls)
        (setq reminderd-agent-at-work t)
        (reminderd-report session 'tool/begin
                          :call id
                          :name (plist-get call :name)
                          :input (or (plist-get call :args)
                                     (make-hash-table)))
        (let ((file (reminderd-gptel--file call 'write)))
          (when file (push file files)))))
    (if (null files)
        (funcall go-on)
      (reminderd-gptel--await
       fsm
       (lambda (callback)
         (reminderd-ask session 'edit/begin
                        `(:uris ,(vconcat (mapcar #'reminderd-uri
                                                  (nreverse files))))
                        callback))
       (lambda (_) (funcall go-on))
       #'ignore))))

(defun reminderd-gptel--end-tools (request fsm go-on)
  "Report the calls of REQUEST in FSM that ended, then GO-ON."
  (let ((session (reminderd-gptel--request-session request)))
    (pcase-dolist (`(,call . ,id) (reminderd-gptel--calls fsm))
      (when (member id (reminderd-gptel--request-calls request))
        (let ((good (reminderd-gptel--succeeded-p call)))
          (reminderd-gptel--report-files session call good)
          (when good (reminderd-gptel--report-tasks session call))
          (reminderd-report session 'tool/end
                            :call id
                            :name (plist-get call :name)
                            :ok (if good t :json-false))))))
  (reminderd-gptel--forget-calls request)
  (funcall go-on))

(defun reminderd-gptel--calls (fsm)
  "Return the tool calls of FSM, each with its id behind it.
Where a provider gives no ids, the calls are told by their places."
  (cl-loop for call in (plist-get (gptel-fsm-info fsm) :tool-use)
           for number from 1
           collect (cons call (or (plist-get call :id)
                                  (format "call-%d" number)))))

(defun reminderd-gptel--forget-calls (request)
  "Take note that no tool call of REQUEST is open any more."
  (cl-decf reminderd-gptel--open-calls
           (length (reminderd-gptel--request-calls request)))
  (setf (reminderd-gptel--request-calls request) nil)
  (setq reminderd-agent-at-work (> reminderd-gptel--open-calls 0)))

(defun reminderd-gptel--succeeded-p (call)
  "Return non-nil unless CALL is known to have failed.
gptel gives the error of a tool as its result, the name of the error
first."
  (let ((result (plist-get call :result)))
    (not (or (plist-get call :error)
             (and (stringp result)
                  (string-match "\\`\\([a-z][-a-z]*\\) " result)
                  (get (intern-soft (match-string 1 result))
                       'error-conditions))))))

(defun reminderd-gptel--file (call deed)
  "Return the file to which CALL does DEED, nil when it does none."
  (when (eq deed (cdr (assoc (plist-get call :name) reminderd-gptel-tools)))
    (let* ((arguments (plist-get call :args))
           (name (cl-loop for key in reminderd-gptel-file-arguments
                          for value = (plist-get arguments key)
                          when (stringp value) return value))
           (inside (plist-get arguments :filename)))
      (when (and name (not (file-remote-p (expand-file-name name))))
        (expand-file-name (if (and (stringp inside)
                                   (equal name (plist-get arguments :path)))
                              (expand-file-name inside name)
                            name))))))

(defun reminderd-gptel--report-files (session call good)
  "Report to SESSION what CALL did to a file, if it was GOOD."
  (let ((read (reminderd-gptel--file call 'read))
        (written (reminderd-gptel--file call 'write)))
    (when (and read good)
      (reminderd-report session 'file/read
                        :uri (reminderd-uri read)
                        :partial (if (cl-loop
                                      for key in
                                      reminderd-gptel-range-arguments
                                      thereis (plist-get
                                               (plist-get call :args) key))
                                     t :json-false)))
    (when written
      (reminderd-report session 'edit/end
                        :uris (vector
                               `(:uri ,(reminderd-uri written)
                                      ,@(let ((version (reminderd-file-version
                                                        written)))
                                          (and version (list :version version)))))
                        :ok (if good t :json-false))
      (when good
        (reminderd-report session 'file/wrote
                          :uri (reminderd-uri written))))))

(defun reminderd-gptel--report-tasks (session call)
  "Report to SESSION the list of tasks that CALL wrote, if it wrote one."
  (when (eq 'tasks (cdr (assoc (plist-get call :name) reminderd-gptel-tools)))
    (let ((tasks (or (plist-get (plist-get call :args) :todos)
                     (plist-get (plist-get call :args) :tasks))))
      (reminderd-report
       session 'task/replace
       :tasks (vconcat
               (cl-loop for task being the elements of (append tasks nil)
                        for number from 1
                        collect (reminderd-gptel--task task number)))))))

(defun reminderd-gptel--task (task number)
  "Return TASK, the list's member NUMBER, as the daemon takes it."
  (list :id (format "%s" (or (plist-get task :id) number))
        :subject (or (plist-get task :content) (plist-get task :subject)
                     (plist-get task :title) "")
        :status (or (plist-get task :status) "pending")))

;;;; The mode

;;;###autoload
(define-minor-mode reminderd-gptel-mode
  "Give the model of each gptel chat its system reminders."
  :global t
  :group 'reminderd-gptel
  (if reminderd-gptel-mode
      (progn
        (add-hook 'gptel-prompt-transform-functions
                  #'reminderd-gptel--transform)
        (add-hook 'gptel-save-state-hook #'reminderd-gptel--save)
        (add-hook 'gptel-mode-hook #'reminderd-gptel--chat-opened)
        (add-hook 'reminderd-health-functions #'reminderd-gptel--health))
    (remove-hook 'gptel-prompt-transform-functions
                 #'reminderd-gptel--transform)
    (remove-hook 'gptel-save-state-hook #'reminderd-gptel--save)
    (remove-hook 'gptel-mode-hook #'reminderd-gptel--chat-opened)
    (remove-hook 'reminderd-health-functions #'reminderd-gptel--health)))

(defun reminderd-gptel--health ()
  "Return what `reminderd-health' says of gptel."
  (list (cons (memq #'reminderd-gptel--transform
                    (default-value 'gptel-prompt-transform-functions))
              (format "gptel %s, transform %s" gptel-version
                      (if reminderd-gptel-mode "installed"
                        "missing (reminderd-gptel-mode)")))))

(provide 'reminderd-gptel)
;;; reminderd-gptel.el ends here
