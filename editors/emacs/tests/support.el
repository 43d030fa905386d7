;;; support.el --- What the client's tests share  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Each test has directories, a daemon and an Emacs state of its own.  Nothing
;; sleeps: `should-soon' waits for a condition, with a limit.  When a test
;; fails, the messages that were exchanged are printed.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'reminderd)
(require 'reminderd-view)

(defconst test-repository
  (expand-file-name "../../../" (file-name-directory
                                 (or load-file-name buffer-file-name)))
  "The checkout.")

(defconst test-daemon
  (or (getenv "REMINDERD")
      (expand-file-name "target/debug/reminderd" test-repository))
  "The daemon's program.")

(defvar test-directory nil
  "The directory of the running test.")

(defvar test-traffic nil
  "The messages of the running test, newest first, as (FROM . MESSAGE).")

(defconst test-patience 20
  "Seconds after which a condition is taken not to come true.")

(defmacro should-soon (condition)
  "Wait until CONDITION holds, and return its value."
  `(let ((limit (+ (float-time) test-patience)) value)
     (while (not (or (setq value ,condition)
                     (> (float-time) limit)))
       (accept-process-output nil 0.01))
     (unless value
       (ert-fail (list 'should-soon ',condition)))
     value))

(defun test-note-sent (connection method params &rest _)
  "Note that METHOD with PARAMS goes over CONNECTION."
  (ignore connection)
  (push (list 'client method params) test-traffic))

(defun test-note-received (connection message)
  "Note that MESSAGE came over CONNECTION."
  (ignore connection)
  (push (list 'daemon message) test-traffic))

(defun test-sent (method)
  "Return the params of all METHOD messages that were sent, oldest first."
  (cl-loop for (from what params) in (reverse test-traffic)
           when (and (eq from 'client) (eq what method))
           collect params))

(defmacro with-daemon (command &rest body)
  "Run BODY with the daemon COMMAND, nil standing for the real one."
  (declare (indent 1))
  `(let* ((test-directory (make-temp-file "rd" t))
          (default-directory (file-name-as-directory test-directory))
          (process-environment
           (append (list (concat "XDG_RUNTIME_DIR=" test-directory)
                         (concat "XDG_STATE_HOME=" test-directory)
                         (concat "XDG_CONFIG_HOME=" test-directory))
                   process-environment))
          (reminderd-command (or ,command
                                 (list test-daemon "connect" "--idle" "1")))
          ;; Machines that test are slow; tests of the deadline set it.
          (reminderd-deadline 10)
          (reminderd-restart-delay 0)
          (reminderd-away nil)
          (reminderd--away-told nil)
          (reminderd--problems nil)
          (reminderd--sessions (make-hash-table :test #'equal))
          (test-traffic nil)
          (test-warnings nil)
          (passed nil))
     (reminderd-disconnect)
     (setq reminderd--started-at nil)
     (advice-add 'display-warning :around #'test-note-warning)
     (advice-add 'reminderd--send :before #'test-note-sent)
     (advice-add 'jsonrpc-notify :before #'test-note-sent)
     (advice-add 'jsonrpc-connection-receive :before #'test-note-received)
     (unwind-protect
         (prog1 (progn ,@body) (setq passed t))
       (unless passed
         (dolist (message (reverse test-traffic))
           (message "%s" (truncate-string-to-width
                          (prin1-to-string message) 1400))))
       (reminderd-disconnect)
       (advice-remove 'display-warning #'test-note-warning)
       (advice-remove 'reminderd--send #'test-note-sent)
       (advice-remove 'jsonrpc-notify #'test-note-sent)
       (advice-remove 'jsonrpc-connection-receive #'test-note-received)
       (should-soon (test-delete test-directory)))))

(defun test-delete (directory)
  "Delete DIRECTORY, and return whether that went.
A daemon that lets go of its sessions may still write there."
  (ignore-errors (delete-directory directory t))
  (not (file-exists-p directory)))

(defun test-wrapped-daemon ()
  "Return a command of which the daemon is a child, not the process itself.
Emacs knows of its own processes that they are stopped."
  (list "sh" "-c" "\"$0\"; exit" test-daemon))

(defun test-signal-daemon (signal)
  "Send SIGNAL to the daemon of `test-wrapped-daemon'."
  (let ((shell (process-id (jsonrpc--process reminderd--connection))))
    (signal-process
     (should-soon
      (cl-find-if (lambda (id)
                    (eql shell (alist-get 'ppid (process-attributes id))))
                  (list-system-processes)))
     signal)))

(defun test-fake-daemon (rules)
  "Return the command of a scripted daemon that follows RULES, an alist."
  (let ((file (make-temp-file "rules" nil ".json" (json-serialize rules))))
    (list "python3"
          (expand-file-name "tests/support/fake_daemon.py" test-repository)
          file)))

(defun test-ask (session method &rest params)
  "Send METHOD with PARAMS about SESSION and return the result."
  (let ((answer nil)
        (connection (reminderd--session-connection session)))
    (reminderd--send connection method
                     `(:session ,(reminderd-session-id session) ,@params)
                     :success (lambda (result) (setq answer (list result)))
                     :failure (lambda (fault)
                                (setq answer (list 'fault fault))))
    (when (eq 'fault (car (should-soon answer)))
      (ert-fail (list method answer)))
    (car answer)))

(defun test-wait (session)
  "Return the delivery of a WAIT in SESSION."
  (let ((answer nil))
    (reminderd-wait session (lambda (delivery)
                              (setq answer (list delivery))))
    (car (should-soon answer))))

(defun test-types (delivery)
  "Return the types of the entries of DELIVERY."
  (mapcar (lambda (entry) (plist-get entry :type))
          (plist-get delivery :entries)))

(defvar test-warnings nil
  "What the person was warned of in the running test, newest first.")

(defun test-note-warning (_show _type message &rest _)
  "Note that the person was warned with MESSAGE."
  (push message test-warnings))

(defun test-write (name text)
  "Write TEXT into the file NAME of the test and return its full name."
  (let ((file (expand-file-name name test-directory)))
    (with-temp-file file (insert text))
    file))

(defun test-speak (session name)
  "Let the job NAME end, of which SESSION is to be told."
  (reminderd-report session 'job/ended :job name :state "done"))

(provide 'support)
;;; support.el ends here
