;;; core-test.el --- The client against the daemon  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Code:

(require 'support)
(defvar reminderd-flymake-mode)
(declare-function reminderd-flymake-mode "reminderd-flymake")

(defun core-session ()
  "Return an open session."
  (reminderd-open "s" :root test-directory))

;;;; Telling

(ert-deftest core-tells-once ()
  (dolist (arguments '(("connect" "--idle" "1") nil))
    (with-daemon (cons test-daemon arguments)
      (let ((session (core-session)) delivery)
        (reminderd-begin-turn session "1")
        (test-speak session "build")
        (setq delivery (test-wait session))
        (should (equal (test-types delivery) '("notice")))
        (reminderd-commit delivery)
        (should (equal (test-types (test-wait session)) nil))
        (reminderd-end-turn session "1" "completed")
        (should (equal (length (plist-get
                                (test-ask session 'reminder/history)
                                :records))
                       1))))))

(ert-deftest core-rebuilds-a-message-from-its-record ()
  (with-daemon nil
    (let ((session (core-session)) delivery)
      (reminderd-begin-turn session "1")
      (test-speak session "build")
      (test-speak session "ünïcödé 😀")
      (setq delivery (test-wait session))
      (should (equal (reminderd-record-content (plist-get delivery :record))
                     (plist-get (plist-get delivery :message) :content))))))

(ert-deftest core-release-keeps-what-was-not-told ()
  ;; B076
  (with-daemon nil
    (let ((session (core-session)))
      (reminderd-begin-turn session "1")
      (test-speak session "build")
      (reminderd-release (test-wait session) "test")
      (should (equal (test-types (test-wait session)) '("notice"))))))

(ert-deftest core-cancelled-wait-calls-nobody-and-leaves-no-token ()
  (with-daemon nil
    (let ((session (core-session)) called)
      (reminderd-begin-turn session "1")
      (test-speak session "build")
      (reminderd-cancel (reminderd-wait session
                                        (lambda (_) (setq called t))))
      (should (equal (test-types (test-wait session)) '("notice")))
      (should-not called)
      (should (equal (length (test-sent '$/cancelRequest)) 1)))))

(ert-deftest core-reports-what-history-holds ()
  (with-daemon nil
    (let ((session (core-session)))
      (reminderd-report session 'roster/register
                        :reminder '(:id "rule" :body "Use tabs."))
      (reminderd-begin-turn session "1")
      (let ((delivery (test-wait session)))
        (should (equal (test-types delivery) '("rule")))
        (reminderd-commit delivery)
        (reminderd-report-history
         session (list (plist-get (plist-get delivery :record) :id)))
        (should (equal (test-types (test-wait session)) nil))
        (reminderd-report-history session nil)
        (should (equal (test-types (test-wait session)) '("rule")))))))

(ert-deftest core-goes-on-after-the-daemon-was-killed ()
  ;; B080: what the records say was told is not told again.
  (with-daemon (list test-daemon)
    (let* ((told nil)
           (session (reminderd-open "s" :root test-directory
                                    :records (lambda () told))))
      (reminderd-report session 'roster/register
                        :reminder '(:id "rule" :body "Use tabs."))
      (reminderd-begin-turn session "1")
      (let ((delivery (test-wait session)) (record nil))
        (reminderd-commit delivery :then (lambda (it) (setq record it)))
        (push (should-soon record) told))
      (signal-process (jsonrpc--process reminderd--connection) 'KILL)
      (should-soon (null reminderd--connection))
      ;; The turn is open again without anybody's doing.
      (should (equal (test-types (test-wait session)) '("recovery"))))))

;;;; A daemon that is not there, dead, slow or of another kind

(defun core-goes-out-without (command)
  "Check that a WAIT with COMMAND is answered with nil, and told once."
  (with-daemon command
    (let ((session (core-session)) (reminderd-deadline 0.3))
      (reminderd-begin-turn session "1")
      (should-not (test-wait session))
      (should-not (test-wait session))
      (should reminderd-away)
      (should (equal (length test-warnings) 1)))))

(ert-deftest core-absent-daemon ()
  (core-goes-out-without '("nonexistent-reminderd" "connect"))
  (core-goes-out-without '("/nonexistent/reminderd" "connect")))

(ert-deftest core-daemon-that-ends-at-once ()
  (core-goes-out-without '("false")))

(ert-deftest core-daemon-that-says-nothing ()
  (core-goes-out-without '("sleep" "60")))

(ert-deftest core-daemon-that-talks-nonsense ()
  (core-goes-out-without '("yes")))

(ert-deftest core-daemon-that-ends-in-a-wait ()
  (core-goes-out-without
   (test-fake-daemon '((reminder/wait . [((exit . 3))])))))

(ert-deftest core-daemon-that-never-answers-a-wait ()
  (core-goes-out-without
   (test-fake-daemon '((reminder/wait . [((hang . t))])))))

(ert-deftest core-daemon-of-another-version ()
  (core-goes-out-without
   (test-fake-daemon
    '((initialize . [((error . ((code . -32602)
                                (message . "version 2 only"))))])))))

(ert-deftest core-daemon-that-refuses ()
  (core-goes-out-without
   (test-fake-daemon
    '((reminder/wait . [((error . ((code . -33002)
                                   (message . "held"))))])))))

(ert-deftest core-daemon-that-comes-back-is-noticed ()
  (with-daemon '("false")
    (let ((session (core-session)))
      (reminderd-begin-turn session "1")
      (should-not (test-wait session))
      (setq reminderd-command (list test-daemon))
      (should (test-wait session))
      (should-not reminderd-away))))

(ert-deftest core-restarts-no-faster-than-the-delay ()
  (with-daemon '("sh" "-c" "echo started >>$XDG_STATE_HOME/starts")
    (let ((session (core-session)) (reminderd-restart-delay 3600)
          (starts (expand-file-name "starts" test-directory)))
      (should-soon (file-exists-p starts))
      (should-not (test-wait session))
      (should-not (test-wait session))
      (with-temp-buffer
        (insert-file-contents starts)
        (should (equal (buffer-string) "started\n"))))))

(ert-deftest core-late-answer-is-released ()
  (with-daemon (test-wrapped-daemon)
    (let ((session (core-session)))
      (reminderd-begin-turn session "1")
      (test-speak session "build")
      (test-ask session 'session/state)
      (dotimes (_ 2)
        (test-signal-daemon 'STOP)
        (let ((reminderd-deadline 0.1))
          (should-not (test-wait session)))
        (test-signal-daemon 'CONT)
        (should-soon
         (cl-loop for open across (test-ask session 'session/list)
                  always (equal (plist-get open :openTokens) 0))))
      ;; It is as slow as it was: one notice is enough.
      (should (equal (length test-warnings) 1))
      (should (equal (test-types (test-wait session)) '("notice"))))))

(ert-deftest core-answer-that-crosses-a-cancel-is-released ()
  (with-daemon (test-fake-daemon
                '((reminder/wait . [((after . [])
                                     (result . ((token . "t"))))])))
    (let ((session (core-session)))
      (reminderd-cancel (reminderd-wait session #'ignore))
      (should-soon (test-sent 'reminder/release)))))

(ert-deftest core-stopped-daemon-blocks-nothing ()
  ;; Were the pipe filled, this test would never end.
  (with-daemon (test-wrapped-daemon)
    (let ((session (core-session)))
      (test-ask session 'session/state)
      (test-signal-daemon 'STOP)
      (core-flood session)
      (test-signal-daemon 'CONT)
      (core-flood-arrives session))))

(ert-deftest core-stopped-process-blocks-nothing ()
  (with-daemon (list test-daemon)
    (let ((session (core-session)))
      (test-ask session 'session/state)
      (signal-process (jsonrpc--process reminderd--connection) 'STOP)
      (core-flood session)
      (signal-process (jsonrpc--process reminderd--connection) 'CONT)
      (core-flood-arrives session))))

(ert-deftest core-process-that-goes-on-meanwhile-is-kept ()
  (with-daemon nil
    (let* ((session (core-session))
           (send (symbol-function 'process-send-string))
           (refused 0))
      (test-ask session 'session/state)
      (cl-letf (((symbol-function 'process-send-string)
                 (lambda (process text)
                   (if (< (cl-incf refused) 3)
                       (error "Process %s not running: stopped (signal)"
                              (process-name process))
                     (funcall send process text)))))
        (core-flood session)
        (core-flood-arrives session))
      (should (> refused 2)))))

(defun core-flood (session)
  "Report much more to SESSION than a pipe holds."
  (dotimes (number 400)
    (reminderd-report session 'task/put
                      :task (list :id (format "%d" number)
                                  :subject (make-string 1000 ?x)
                                  :status "pending"))))

(defun core-flood-arrives (session)
  "Check that all of `core-flood' came to SESSION, in order."
  (should (equal (mapcar (lambda (task) (plist-get task :id))
                         (test-ask session 'task/list))
                 (mapcar (lambda (number) (format "%d" number))
                         (number-sequence 0 399)))))

(ert-deftest core-message-larger-than-the-pipe-arrives ()
  (with-daemon nil
    (let ((session (core-session)))
      (reminderd-begin-turn session "1")
      (reminderd-report session 'reminder/enqueue
                        :body (make-string 300000 ?ü))
      (test-speak session "build")
      (should (equal (test-types (test-wait session))
                     '("pending-events" "notice"))))))

(ert-deftest core-daemon-that-reads-nothing-is-given-up ()
  (with-daemon '("sleep" "60")
    (let ((session (core-session)))
      (dotimes (_ 40)
        (reminderd-report session 'reminder/enqueue
                          :body (make-string 500000 ?x)))
      (should reminderd-away)
      (should (equal (length test-warnings) 1)))))

(ert-deftest core-commit-is-sent-again-when-the-store-failed ()
  (with-daemon (test-fake-daemon
                '((reminder/commit
                   . [((error . ((code . -33010) (message . "full"))))
                      ((result . ((record . ((id . "r"))))))])))
    (let (record)
      (core-session)
      (reminderd-commit '(:token "t") :then (lambda (it) (setq record it)))
      (should (equal (should-soon record) '(:id "r"))))))

;;;; Nothing is said to the person that the model alone is to hear

(ert-deftest core-bodies-are-in-no-log ()
  ;; B007
  (with-daemon nil
    (let ((session (core-session)))
      (reminderd-begin-turn session "1")
      (test-speak session "secret-job")
      (reminderd-commit (test-wait session))
      ;; Buffers whose names begin with a space are not shown.
      (should-not
       (cl-loop for buffer in (buffer-list)
                unless (string-prefix-p " " (buffer-name buffer))
                when (with-current-buffer buffer
                       (save-excursion
                         (goto-char (point-min))
                         (search-forward "secret-job" nil t)))
                collect (buffer-name buffer))))))

;;;; Files

(ert-deftest core-save-is-told-as-the-persons ()
  (with-daemon nil
    (let* ((session (core-session))
           (file (test-write "a b%.txt" "one\n"))
           (reminderd-mode nil))
      (reminderd-mode 1)
      (unwind-protect
          (progn
            (reminderd-begin-turn session "1")
            (reminderd-report session 'file/read :uri (reminderd-uri file))
            (reminderd-commit (test-wait session))
            (with-current-buffer (find-file-noselect file)
              (insert "two\n")
              (save-buffer)
              (kill-buffer))
            (let ((delivery (test-wait session)))
              (should (equal (test-types delivery) '("edited-files")))
              (should (string-match-p
                       "editor\\|person\\|user"
                       (plist-get (aref (plist-get delivery :entries) 0)
                                  :body)))))
        (reminderd-mode -1)))))

(ert-deftest core-save-of-an-agent-is-nobodys ()
  (with-daemon nil
    (core-session)
    (let ((file (test-write "a.txt" "one\n")))
      (reminderd-mode 1)
      (unwind-protect
          (let ((reminderd-agent-at-work t))
            (with-current-buffer (find-file-noselect file)
              (insert "two\n")
              (save-buffer)
              (kill-buffer))
            (should (test-sent 'workspace/didChangeWatchedFiles))
            (should-not (test-sent 'textDocument/didSave)))
        (reminderd-mode -1)))))

(ert-deftest core-save-starts-no-daemon ()
  (with-daemon nil
    (let ((file (test-write "a.txt" "one\n")))
      (reminderd-mode 1)
      (unwind-protect
          (with-current-buffer (find-file-noselect file)
            (insert "two\n")
            (save-buffer)
            (kill-buffer)
            (should-not reminderd--connection))
        (reminderd-mode -1)))))

(ert-deftest core-positions-are-in-utf-16 ()
  ;; B057
  (with-temp-buffer
    (insert "one\nlet 😀 = x;\n")
    (search-backward "=")
    (should (equal (reminderd-position (point)) '(:line 1 :character 7)))))

(ert-deftest core-uris-name-every-file ()
  ;; B051, B126
  (pcase-dolist (`(,name . ,uri)
                 '(("a+b.rs" . "a%2Bb.rs") ("100%.rs" . "100%25.rs")
                   ("c#.rs" . "c%23.rs") ("q?.rs" . "q%3F.rs")
                   ("x%20y.rs" . "x%2520y.rs") ("a (1).rs" . "a%20%281%29.rs")
                   ("é.rs" . "%C3%A9.rs")))
    (should (equal (reminderd-uri (concat "/w/" name))
                   (concat "file:///w/" uri)))))

(ert-deftest core-versions-rise-with-changes ()
  (with-temp-buffer
    (let ((first (reminderd-version)))
      (should (equal (reminderd-version) first))
      (insert "x")
      (should (> (reminderd-version) first)))))

;;;; Views

(ert-deftest core-explain-shows-each-reminder ()
  (with-daemon nil
    (let ((session (core-session)))
      (reminderd-explain session)
      (with-current-buffer "*reminderd explain*"
        (should-soon (> (buffer-size) 0))
        (should (derived-mode-p 'special-mode))
        (should (string-match-p "^task-nudge +no" (buffer-string)))
        (kill-buffer)))))

(ert-deftest core-log-shows-rows-and-bodies-on-demand ()
  (with-daemon nil
    (let ((session (core-session)))
      (reminderd-begin-turn session "1")
      (test-speak session "build")
      (reminderd-commit (test-wait session))
      (reminderd-log session)
      (with-current-buffer "*reminderd log*"
        (should-soon (> (buffer-size) 0))
        (goto-char (point-min))
        (should (string-match-p "◇ 1 system reminder (job)"
                                (buffer-string)))
        (should-not (overlays-in (point-min) (point-max)))
        (reminderd-log-toggle)
        (should (string-match-p
                 "build"
                 (overlay-get (car (overlays-in (point-min) (point-max)))
                              'after-string)))
        (reminderd-log-toggle)
        (should-not (overlays-in (point-min) (point-max)))
        (kill-buffer)))))

(ert-deftest core-health-says-what-works-and-what-does-not ()
  (with-daemon nil
    (core-session)
    (reminderd-health)
    (with-current-buffer "*reminderd health*"
      (should-soon (string-match-p "ok +daemon: reminderd [0-9]"
                                   (buffer-string)))
      (should (string-match-p "1 here, 1 with the daemon" (buffer-string)))
      (kill-buffer)))
  (with-daemon '("nonexistent-reminderd")
    (reminderd-health)
    (with-current-buffer "*reminderd health*"
      (should (string-match-p "-- +command: .*(not found)" (buffer-string)))
      (should (string-match-p "-- +last trouble: .*could not be started"
                              (buffer-string)))
      (kill-buffer))))

(ert-deftest core-mode-line-counts-and-warns ()
  (with-daemon nil
    (with-temp-buffer
      (should-not (reminderd--mode-line))
      (setq reminderd-buffer-session (core-session))
      (setf (reminderd-session-count reminderd-buffer-session) 3)
      (should (equal (reminderd--mode-line) " ◇3"))
      (setq reminderd-away "gone")
      (should (equal (substring-no-properties (reminderd--mode-line))
                     " ◇!")))))

;;;; The README

(defun core-readme-set-up ()
  "Return the set-up that the README shows, for this checkout."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "editors/emacs/README.md"
                                            test-repository))
    (search-forward "```elisp\n")
    (replace-regexp-in-string
     "/path/to/reminderd/" test-repository
     (buffer-substring (point) (progn (search-forward "```")
                                      (match-beginning 0)))
     t t)))

(ert-deftest core-readme-sets-up ()
  (with-daemon nil
    (require 'flymake)
    (let ((load-path load-path))
      (unwind-protect
          (progn
            (load (test-write "init.el" (core-readme-set-up)) nil t)
            (should reminderd-mode)
            (should reminderd-flymake-mode)
            (should (commandp 'reminderd-health)))
        (reminderd-mode -1)
        (reminderd-flymake-mode -1)))))

;;; core-test.el ends here
