;;; reminderd-flycheck.el --- Report Flycheck's problems to reminderd  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Flycheck runs its checkers one behind the other.  Each is reported by its
;; own name: that it runs, what it found, that it failed, with the version of
;; the text that it looked at.

;;; Code:

(require 'reminderd)

(declare-function flycheck-syntax-check-checker "flycheck" (check))
(declare-function flycheck-error-checker "flycheck" (error))
(declare-function flycheck-error-id "flycheck" (error))
(declare-function flycheck-error-level "flycheck" (error))
(declare-function flycheck-error-level-severity "flycheck" (level))
(declare-function flycheck-error-message "flycheck" (error))
(declare-function flycheck-error-region-for-mode "flycheck" (error mode))
(defvar flycheck-current-errors)
(defvar flycheck-current-syntax-check)

(defvar-local reminderd-flycheck--running nil
  "The checker at work and the version of the text that it looks at.")

(defun reminderd-flycheck--changed (status)
  "Report what the new STATUS of Flycheck in this buffer says."
  (pcase status
    ('running
     ;; The checker before this one has finished.
     (reminderd-flycheck--publish "done")
     (setq reminderd-flycheck--running
           (cons (flycheck-syntax-check-checker flycheck-current-syntax-check)
                 (reminderd-version)))
     (reminderd-publish (reminderd-flycheck--name) "running" nil
                        (cdr reminderd-flycheck--running)))
    ('finished (reminderd-flycheck--publish "done"))
    ((or 'errored 'interrupted) (reminderd-flycheck--publish "failed"))))

(defun reminderd-flycheck--name ()
  "Return the name of the checker at work."
  (format "flycheck:%s" (car reminderd-flycheck--running)))

(defun reminderd-flycheck--publish (state)
  "Report that the checker at work, if any, ended its work in STATE."
  (pcase-let ((`(,checker . ,version) reminderd-flycheck--running))
    (when checker
      (reminderd-publish
       (reminderd-flycheck--name) state
       (cl-loop for problem in flycheck-current-errors
                when (eq checker (flycheck-error-checker problem))
                collect (reminderd-flycheck--diagnostic problem))
       version)
      (setq reminderd-flycheck--running nil))))

(defun reminderd-flycheck--diagnostic (problem)
  "Return PROBLEM, a Flycheck error, in LSP's form."
  (let ((region (or (flycheck-error-region-for-mode problem 'columns)
                    (cons (point-min) (point-min)))))
    `(:range (:start ,(reminderd-position (car region))
              :end ,(reminderd-position (cdr region)))
      :severity ,(reminderd-flycheck--severity (flycheck-error-level problem))
      ,@(and (flycheck-error-id problem)
             (list :code (format "%s" (flycheck-error-id problem))))
      :message ,(or (flycheck-error-message problem)
                    (format "%s" (flycheck-error-level problem))))))

(defun reminderd-flycheck--severity (level)
  "Return LSP's severity of LEVEL.
Flycheck's own levels have the severities 100, 10 and -10; others lie
between or beyond."
  (let ((severity (flycheck-error-level-severity level)))
    (cond ((>= severity 100) 1)
          ((>= severity 10) 2)
          (t 3))))

;;;###autoload
(define-minor-mode reminderd-flycheck-mode
  "Report what Flycheck finds to the reminder daemon."
  :global t
  :group 'reminderd
  (if reminderd-flycheck-mode
      (add-hook 'flycheck-status-changed-functions
                #'reminderd-flycheck--changed)
    (remove-hook 'flycheck-status-changed-functions
                 #'reminderd-flycheck--changed)))

(provide 'reminderd-flycheck)
;;; reminderd-flycheck.el ends here
