;;; reminderd-flymake.el --- Report Flymake's problems to reminderd  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Each Flymake backend is one checker.  That it runs, what it found and that
;; it failed is reported with the version of the text that it looked at, so
;; that a result from before an edit is not taken for one after it.
;;
;; Flymake runs no hook when a backend starts or reports.  The mode therefore
;; advises the three functions in which that happens, as long as it is on.

;;; Code:

(require 'reminderd)
(require 'flymake)

(defvar-local reminderd-flymake--checked nil
  "Alist of backends and the versions of the text that they look at.")

(defun reminderd-flymake--name (backend)
  "Return the name of BACKEND as a checker."
  (format "flymake:%s" (if (symbolp backend) backend "anonymous")))

(defun reminderd-flymake--publish (backend state &optional diagnostics)
  "Report that BACKEND is in STATE with DIAGNOSTICS.
A fault in this must not disable the backend."
  (with-demoted-errors "reminderd-flymake: %S"
    (reminderd-publish (reminderd-flymake--name backend) state diagnostics
                       (alist-get backend reminderd-flymake--checked))))

(defun reminderd-flymake--started (backend &rest _)
  "Report that BACKEND looks at the text as it is."
  (setf (alist-get backend reminderd-flymake--checked) (reminderd-version))
  (reminderd-flymake--publish backend "running"))

(defun reminderd-flymake--reported (backend _token action &rest _)
  "Report what BACKEND has found, unless its ACTION says that it gave up."
  (unless (eq action :panic)            ;then it is disabled, too
    (reminderd-flymake--publish
     backend "done"
     (cl-loop for diagnostic in (flymake-diagnostics)
              when (eq backend (flymake-diagnostic-backend diagnostic))
              collect (reminderd-flymake--diagnostic diagnostic)))))

(defun reminderd-flymake--disabled (backend &rest _)
  "Report that BACKEND failed."
  (reminderd-flymake--publish backend "failed"))

(defun reminderd-flymake--diagnostic (diagnostic)
  "Return DIAGNOSTIC in LSP's form."
  `(:range (:start ,(reminderd-position (flymake-diagnostic-beg diagnostic))
            :end ,(reminderd-position (flymake-diagnostic-end diagnostic)))
    ,@(let ((severity (reminderd-flymake--severity
                       (flymake-diagnostic-type diagnostic))))
        (and severity (list :severity severity)))
    :message ,(flymake-diagnostic-text diagnostic)))

(defun reminderd-flymake--severity (type)
  "Return LSP's severity of TYPE, nil when it says nothing of that."
  ;; Backends define types of their own on top of Flymake's.
  (pcase (or (get type 'flymake-category) type)
    ((or :error 'flymake-error 'eglot-error) 1)
    ((or :warning 'flymake-warning 'eglot-warning) 2)
    ((or :note 'flymake-note 'eglot-note) 3)))

;;;###autoload
(define-minor-mode reminderd-flymake-mode
  "Report what Flymake finds to the reminder daemon."
  :global t
  :group 'reminderd
  (pcase-dolist (`(,function ,where ,advice)
                 '((flymake--run-backend
                    :before reminderd-flymake--started)
                   (flymake--handle-report
                    :after reminderd-flymake--reported)
                   (flymake--disable-backend
                    :after reminderd-flymake--disabled)))
    (if reminderd-flymake-mode
        (advice-add function where advice)
      (advice-remove function advice))))

(provide 'reminderd-flymake)
;;; reminderd-flymake.el ends here
