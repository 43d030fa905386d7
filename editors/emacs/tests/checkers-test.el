;;; checkers-test.el --- Flymake and Flycheck report problems  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Code:

(require 'support)
(require 'flymake)
(require 'flycheck)
(require 'reminderd-flymake)
(require 'reminderd-flycheck)

(defun checkers-published (checker)
  "Return what was published of CHECKER, oldest first, as (STATE . MESSAGES)."
  (cl-loop for params in (test-sent 'diagnostic/publish)
           when (equal (plist-get params :checker) checker)
           collect (cons (plist-get params :state)
                         (sort (mapcar (lambda (problem)
                                         (plist-get problem :message))
                                       (plist-get params :diagnostics))
                               #'string<))))

(defun checkers-versions (checker)
  "Return the versions that were published of CHECKER, oldest first."
  (cl-loop for params in (test-sent 'diagnostic/publish)
           when (equal (plist-get params :checker) checker)
           collect (plist-get params :version)))

(defun checkers-told (session)
  "Return the body of the diagnostics that SESSION is told, \"\" for none."
  (let ((delivery (test-wait session)))
    (reminderd-commit delivery)
    (or (cl-loop for entry across (plist-get delivery :entries)
                 when (equal (plist-get entry :type) "diagnostics")
                 return (plist-get entry :body))
        "")))

(defun checkers-new (told)
  "Return the places of the problems that TOLD says to be new."
  (cl-loop for line in (split-string told "\n")
           until (string-match-p "were there before" line)
           when (string-match "\\`- \\([^ ]+\\): " line)
           collect (match-string 1 line)))

(defmacro with-checked-file (mode &rest body)
  "Run BODY in a file that the global MODE reports on.
SESSION is the session and FILE the file of the buffer."
  (declare (indent 1))
  `(with-daemon nil
     (let* ((session (reminderd-open "s" :root test-directory))
            (file (test-write "a.txt" "one\nbad 😀 x\n"))
            (create-lockfiles nil)
            (make-backup-files nil))
       (,mode 1)
       (unwind-protect
           (with-current-buffer (find-file-noselect file)
             (unwind-protect (progn ,@body)
               (set-buffer-modified-p nil)
               (kill-buffer)))
         (,mode -1)))))

(defun checkers-edit (session file edit check)
  "Have the agent of SESSION change FILE by EDIT, then CHECK it."
  (test-ask session 'edit/begin :uris (vector (reminderd-uri file)))
  (funcall edit)
  (reminderd-report session 'edit/end
                    :uris (vector (list :uri (reminderd-uri file)
                                        :version (reminderd-version)))
                    :ok t)
  (funcall check))

;;;; Flymake

(defun checkers-find-bad (report &rest _)
  "REPORT each word \"bad\" of this buffer, a moment later."
  (let ((buffer (current-buffer)))
    (run-at-time
     0 nil
     (lambda ()
       (with-current-buffer buffer
         (funcall report
                  (save-excursion
                    (goto-char (point-min))
                    (cl-loop while (re-search-forward "😀 \\(x\\)\\|bad" nil t)
                             collect (flymake-make-diagnostic
                                      buffer
                                      (or (match-beginning 1)
                                          (match-beginning 0))
                                      (match-end 0)
                                      (if (match-beginning 1)
                                          :warning :error)
                                      (match-string 0))))))))))

(defun checkers-panic (report &rest _)
  "REPORT that nothing can be checked."
  (funcall report :panic :explanation "no compiler"))

(defun checkers-crash (&rest _)
  "Fail."
  (error "Crashed"))

(defun checkers-flymake (&rest backends)
  "Check this buffer by BACKENDS alone."
  (setq-local flymake-diagnostic-functions backends
              flymake-start-on-flymake-mode nil)
  (flymake-mode 1)
  (flymake-start))

(ert-deftest checkers-flymake-publishes-each-backend ()
  (with-checked-file reminderd-flymake-mode
    (checkers-flymake #'checkers-find-bad #'checkers-panic #'checkers-crash)
    (should-soon (equal (length (checkers-published
                                 "flymake:checkers-find-bad"))
                        2))
    (should (equal (checkers-published "flymake:checkers-find-bad")
                   '(("running") ("done" "bad" "😀 x"))))
    (should (equal (checkers-published "flymake:checkers-panic")
                   '(("running") ("failed"))))
    (should (equal (checkers-published "flymake:checkers-crash")
                   '(("running") ("failed"))))
    (let ((problems (plist-get (car (last (test-sent 'diagnostic/publish)))
                               :diagnostics)))
      (should (equal (cl-loop for problem across problems
                              when (equal (plist-get problem :message) "bad")
                              collect (plist-get problem :severity))
                     '(1)))
      (should (equal (cl-loop for problem across problems
                              when (equal (plist-get problem :severity) 2)
                              collect (plist-get (plist-get problem :range)
                                                 :start))
                     '((:line 1 :character 7)))))
    (should-not reminderd--problems)))

(ert-deftest checkers-flymake-tells-what-an-edit-caused ()
  (with-checked-file reminderd-flymake-mode
    (checkers-flymake #'checkers-find-bad)
    (should-soon (assoc "done" (checkers-published
                                "flymake:checkers-find-bad")))
    (reminderd-begin-turn session "1")
    (checkers-edit session file
                   (lambda ()
                     (goto-char (point-min))
                     (insert "\n\nbad\n")
                     (save-buffer))
                   #'flymake-start)
    (test-ask session 'edit/settle)
    ;; B044: what only moved is not new.
    (should (equal (checkers-new (checkers-told session)) '("a.txt:3:1")))))

(ert-deftest checkers-flymake-result-of-the-old-text-is-not-fresh ()
  ;; B042
  (with-checked-file reminderd-flymake-mode
    (checkers-flymake #'checkers-find-bad)
    (should-soon (assoc "done" (checkers-published
                                "flymake:checkers-find-bad")))
    (reminderd-begin-turn session "1")
    (let (late)
      (checkers-edit session file
                     (lambda ()
                       ;; A check of the text before the edit is still out.
                       (checkers-flymake
                        (lambda (report &rest _) (setq late report)))
                       (goto-char (point-max))
                       (insert "good\n")
                       (save-buffer))
                     (lambda () (funcall late nil)))
      (let ((versions (checkers-versions "flymake:anonymous")))
        (should (equal (length versions) 2))
        (should (< (car versions) (reminderd-version)))
        (should (apply #'= versions))))))

(ert-deftest checkers-flymake-mode-off-reports-nothing ()
  (with-checked-file reminderd-flymake-mode
    (ignore session)
    (reminderd-flymake-mode -1)
    (checkers-flymake #'checkers-find-bad)
    (should-soon (flymake-diagnostics))
    (should-not (test-sent 'diagnostic/publish))))

(ert-deftest checkers-report-nothing-without-a-conversation ()
  (with-daemon nil
    (reminderd-flymake-mode 1)
    (unwind-protect
        (with-current-buffer (find-file-noselect (test-write "a.txt" "bad\n"))
          (checkers-flymake #'checkers-find-bad)
          (should-soon (flymake-diagnostics))
          (should-not reminderd--connection)
          (kill-buffer))
      (reminderd-flymake-mode -1))))

;;;; Flycheck

(flycheck-define-generic-checker 'checkers-first
  "Finds the word bad."
  :start (lambda (checker callback)
           (funcall callback 'finished
                    (save-excursion
                      (goto-char (point-min))
                      (cl-loop while (search-forward "bad" nil t)
                               collect (flycheck-error-new-at
                                        (line-number-at-pos)
                                        (- (current-column) 2) 'error "bad"
                                        :id "E1" :checker checker)))))
  :modes '(text-mode)
  :next-checkers '((t . checkers-second)))

(flycheck-define-generic-checker 'checkers-second
  "Finds an x."
  :start (lambda (checker callback)
           (funcall callback 'finished
                    (list (flycheck-error-new-at 2 7 'warning "x"
                                                 :checker checker))))
  :modes '(text-mode))

(flycheck-define-generic-checker 'checkers-broken
  "Fails."
  :start (lambda (_checker callback)
           (funcall callback 'errored "no compiler"))
  :modes '(text-mode))

(defun checkers-flycheck (&rest checkers)
  "Check this buffer by CHECKERS."
  (setq-local flycheck-checkers checkers
              flycheck-check-syntax-automatically nil)
  (flycheck-mode 1)
  (let ((inhibit-message t)) (flycheck-buffer)))

(ert-deftest checkers-flycheck-publishes-each-checker ()
  (with-checked-file reminderd-flycheck-mode
    (checkers-flycheck 'checkers-first 'checkers-second)
    (should (equal (checkers-published "flycheck:checkers-first")
                   '(("running") ("done" "bad"))))
    (should (equal (checkers-published "flycheck:checkers-second")
                   '(("running") ("done" "x"))))
    (pcase-let* ((`(,first ,second)
                  (cl-loop for params in (test-sent 'diagnostic/publish)
                           when (plist-get params :diagnostics)
                           collect (aref (plist-get params :diagnostics) 0))))
      (should (equal (plist-get first :severity) 1))
      (should (equal (plist-get first :code) "E1"))
      (should (equal (plist-get second :severity) 2))
      (should (equal (plist-get (plist-get second :range) :start)
                     '(:line 1 :character 7))))
    (should-not reminderd--problems)
    (ignore session)))

(ert-deftest checkers-flycheck-failure-is-no-silence ()
  (with-checked-file reminderd-flycheck-mode
    (checkers-flycheck 'checkers-broken)
    (should (equal (checkers-published "flycheck:checkers-broken")
                   '(("running") ("failed"))))
    (ignore session)))

(ert-deftest checkers-flycheck-tells-what-an-edit-caused ()
  (with-checked-file reminderd-flycheck-mode
    (checkers-flycheck 'checkers-first 'checkers-second)
    (reminderd-begin-turn session "1")
    (checkers-edit session file
                   (lambda ()
                     (goto-char (point-max))
                     (insert "bad\n")
                     (save-buffer))
                   #'flycheck-buffer)
    (test-ask session 'edit/settle)
    (should (equal (checkers-new (checkers-told session)) '("a.txt:3:1")))))

;;; checkers-test.el ends here
