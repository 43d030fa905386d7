;;; reminderd-connection.el --- One connection to the reminder daemon  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The life of the daemon's process, and requests over it that never block
;; Emacs.
;;
;; A process that reads nothing would block whoever fills its pipe.  So
;; everything is sent as a request, events too: its answer proves that the
;; daemon has read what came before, and no more is written than fits into the
;; pipe without such a proof.  The rest waits in Emacs.
;;
;; Nothing is logged here: messages carry the bodies of reminders.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)

(defgroup reminderd nil
  "System reminders for language models, owned by a daemon."
  :group 'tools
  :prefix "reminderd-")

(defcustom reminderd-command '("reminderd" "connect")
  "The command that speaks for the daemon on its standard input and output.
`reminderd connect' joins the daemon that all clients share and starts it
when needed; plain `reminderd' is a daemon of this Emacs alone."
  :type '(repeat string))

(defcustom reminderd-deadline 0.5
  "Seconds that a request to a model waits for its reminders.
After that it goes out without them."
  :type 'number)

(defcustom reminderd-restart-delay 10
  "Seconds before a daemon that ended or refused is tried again."
  :type 'number)

(defconst reminderd-version "0.1.0"
  "The version of this client.")

(defconst reminderd--pipe-bytes 32768
  "Most bytes that may be unanswered before more waits in Emacs.
Half of what a pipe holds on Linux.")

(defconst reminderd--queue-bytes (* 16 1024 1024)
  "Most bytes that wait in Emacs before the daemon is given up.")

(defclass reminderd--pipe (jsonrpc-process-connection)
  ((server :initform nil
           :documentation "The reply to `initialize', nil until it came.")
   (unanswered :initform nil
               :documentation "Alist of request ids and their sizes in bytes.")
   (out :initform nil
        :documentation "Frames (ID . TEXT) that wait, oldest first.")
   (later :initform nil
          :documentation "Frames that wait behind those, newest first.")
   (waiting-bytes :initform 0
                  :documentation "The size of all frames that wait.")
   (writing :initform nil
            :documentation "Non-nil while a frame is being written.")
   (next-id :initform nil
            :documentation "The id of the request sent last."))
  :documentation "A connection that never writes more than a pipe holds.")

(defvar reminderd--connection nil
  "The connection in use, nil when there is none.")

(defvar reminderd--started-at nil
  "When the daemon was last started, in seconds since the epoch.")

(defvar reminderd-away nil
  "Why the daemon gives no reminders now, a string; nil when all is well.")

(defvar reminderd--away-told nil
  "Non-nil once the person was told that the daemon is away.")

(defun reminderd--away (reason)
  "Note that the daemon is away for REASON, and tell the person once."
  (setq reminderd-away reason)
  (force-mode-line-update t)
  (unless reminderd--away-told
    (setq reminderd--away-told t)
    (display-warning
     'reminderd
     (format-message
      "%s.  Requests go out without reminders.  See `reminderd-health'."
      reason))))

(defun reminderd--back ()
  "Note that the daemon answers again."
  (when reminderd-away
    (setq reminderd-away nil
          reminderd--away-told nil)
    (force-mode-line-update t)))

;;;; Sending

(cl-defmethod jsonrpc-connection-send ((connection reminderd--pipe)
                                       &rest message
                                       &key id method &allow-other-keys)
  "Send MESSAGE with ID and METHOD over CONNECTION, or let it wait."
  (when method
    (setq message (plist-put (copy-sequence message)
                             :method (format "%s" method))))
  (let ((json (json-serialize `(:jsonrpc "2.0" ,@message)
                              :null-object nil :false-object :json-false)))
    (oset connection next-id id)
    (reminderd--enqueue connection (and method id)
                        (concat (format "Content-Length: %d\r\n\r\n"
                                        (string-bytes json))
                                json))
    (reminderd--flush connection)))

(defun reminderd--enqueue (connection id frame)
  "Let FRAME of the request ID, nil for none, wait in CONNECTION."
  (push (cons id frame) (oref connection later))
  (when (> (cl-incf (oref connection waiting-bytes) (string-bytes frame))
           reminderd--queue-bytes)
    (reminderd--away "The reminder daemon reads nothing any more")
    (reminderd-disconnect)))

(defun reminderd--flush (connection)
  "Write as much of what waits in CONNECTION as its pipe takes."
  ;; While a large frame is written, timers run that may come here.
  (unless (oref connection writing)
    (oset connection writing t)
    (unwind-protect
        (while (and (reminderd--next connection)
                    (reminderd--write connection
                                      (cdr (reminderd--next connection))))
          (pcase-let* ((`(,id . ,frame) (pop (oref connection out)))
                       (size (string-bytes frame)))
            (cl-decf (oref connection waiting-bytes) size)
            (when id (push (cons id size) (oref connection unanswered)))))
      (oset connection writing nil))))

(defun reminderd--next (connection)
  "Return the frame that CONNECTION may write now, nil when there is none."
  (unless (oref connection out)
    (oset connection out (nreverse (oref connection later)))
    (oset connection later nil))
  (let ((next (car (oref connection out)))
        (unanswered (oref connection unanswered)))
    (and next
         (or (null unanswered)
             (<= (+ (string-bytes (cdr next))
                    (cl-loop for (_ . size) in unanswered sum size))
                 reminderd--pipe-bytes))
         next)))

(defun reminderd--write (connection frame)
  "Write FRAME to the process of CONNECTION, and return whether that went."
  (let ((process (jsonrpc--process connection)))
    (condition-case nil
        (progn (process-send-string process frame) t)
      (error
       (pcase (process-status process)
         ;; Emacs does not write to a process that is stopped; its sentinel
         ;; tells when it goes on.
         ('stop)
         ;; It has gone on since, and Emacs learns of that by this question.
         ('run (run-at-time 0.05 nil #'reminderd--flush connection))
         ;; Another has ended, and Emacs had not noticed.  What jsonrpc then
         ;; says to all who wait for an answer is to reach this request, too,
         ;; so it comes a moment later.
         (_ (run-at-time 0 nil #'delete-process process)))
       nil))))

(cl-defun reminderd--send (connection method params &key success failure)
  "Send the request METHOD with PARAMS over CONNECTION and return its id.
SUCCESS is called with the result, FAILURE with the error, a plist."
  (let* (id
         (answered (lambda ()
                     (oset connection unanswered
                           (assq-delete-all id (oref connection unanswered)))
                     (reminderd--flush connection))))
    (jsonrpc-async-request
     connection method params
     :timeout nil
     :success-fn (lambda (result)
                   (funcall answered)
                   (when success (funcall success result)))
     :error-fn (lambda (fault)
                 (funcall answered)
                 (when failure (funcall failure fault))))
    (setq id (oref connection next-id))))

(defun reminderd--cancel (connection id)
  "Cancel the request ID that CONNECTION has not answered yet."
  (when (and connection (jsonrpc-running-p connection))
    (jsonrpc-notify connection '$/cancelRequest (list :id id))))

;;;; Life

(defun reminderd-connection (&optional running)
  "Return the connection, starting the daemon unless it has just failed.
With RUNNING non-nil start nothing.  Return nil when there is none."
  (cond
   ((and reminderd--connection (jsonrpc-running-p reminderd--connection))
    reminderd--connection)
   (running nil)
   ((and reminderd--started-at
         (< (- (float-time) reminderd--started-at) reminderd-restart-delay))
    nil)
   (t (reminderd--connect))))

(defun reminderd--connect ()
  "Start the daemon's process and return its connection, nil on failure."
  (setq reminderd--started-at (float-time))
  (condition-case fault
      (let ((connection (reminderd--make-connection)))
        ;; Of an end before its sentinel was set nobody would hear.
        (unless (jsonrpc-running-p connection) (error "It ended at once"))
        (setq reminderd--connection connection)
        (reminderd--initialize connection)
        connection)
    (error
     (setq reminderd--connection nil)
     (reminderd--away (format "The reminder daemon could not be started (%s)"
                              (error-message-string fault)))
     nil)))

(defun reminderd--make-connection ()
  "Return a connection to a new process."
  (let ((connection
         (apply #'make-instance 'reminderd--pipe
                :name "reminderd"
                :process #'reminderd--make-process
                :on-shutdown #'reminderd--ended
                ;; Bodies are not for a log.  The name of this setting
                ;; changed with jsonrpc 1.0.23.
                (if (slot-exists-p 'jsonrpc-connection '-events-buffer-config)
                    '(:events-buffer-config (:size 0 :format full))
                  '(:events-buffer-scrollback-size 0)))))
    (add-function :around (process-sentinel (jsonrpc--process connection))
                  (lambda (sentinel process change)
                    ;; What jsonrpc says of an end is said by
                    ;; `reminderd--away'.
                    (let ((inhibit-message t) (message-log-max nil))
                      (funcall sentinel process change))
                    (when (process-live-p process)
                      (reminderd--flush connection))))
    connection))

(defun reminderd--make-process ()
  "Start `reminderd-command'."
  ;; A remote directory would start it on another machine.
  (let* ((default-directory temporary-file-directory)
         (stderr (get-buffer-create "*reminderd stderr*"))
         (process (make-process :name "reminderd"
                                :command reminderd-command
                                :connection-type 'pipe
                                :coding 'utf-8-emacs-unix
                                :noquery t
                                :stderr stderr)))
    (let ((pipe (get-buffer-process stderr)))
      (when pipe (set-process-query-on-exit-flag pipe nil)))
    process))

(defun reminderd--initialize (connection)
  "Introduce this client over CONNECTION."
  (reminderd--send
   connection 'initialize
   (list :processId (emacs-pid)
         :capabilities (make-hash-table)
         :initializationOptions
         (list :protocolVersion 1
               :client (list :name "emacs" :version reminderd-version)
               ;; Events are requests here, so that errors come as answers.
               :problems :json-false))
   :success (lambda (result) (oset connection server result))
   :failure (lambda (fault)
              (unless (eql (plist-get fault :code) -1)
                (reminderd--away (format "The reminder daemon refused: %s"
                                         (plist-get fault :message)))
                (reminderd-disconnect))))
  (jsonrpc-notify connection 'initialized nil))

(defun reminderd--ended (connection)
  "Take note that the process of CONNECTION has ended."
  (when (eq connection reminderd--connection)
    (setq reminderd--connection nil)
    (reminderd--away "The reminder daemon ended")))

(defun reminderd-disconnect ()
  "Let go of the daemon."
  (let ((connection reminderd--connection))
    (setq reminderd--connection nil)
    (when (and connection (jsonrpc-running-p connection))
      ;; The end of its input is an exit.
      (delete-process (jsonrpc--process connection)))))

;;;###autoload
(defun reminderd-restart ()
  "Start the daemon's process anew, without waiting for the usual delay."
  (interactive)
  (reminderd-disconnect)
  (setq reminderd--away-told nil)
  (reminderd--connect))

(provide 'reminderd-connection)
;;; reminderd-connection.el ends here
