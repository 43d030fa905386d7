;;; lint.el --- What the client's files must be clean of  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Run in the client's directory: byte-compiles with warnings as errors, checks
;; documentation strings and package conventions, and exits with 1 when there
;; is something to say.

;;; Code:

(require 'bytecomp)
(require 'checkdoc)
(require 'package-lint)
(require 'seq)

;; Experimental as it says: it takes each verb of a relative clause for one of
;; command.
(setq checkdoc-verb-check-experimental-flag nil)

(let ((package-lint-main-file "reminderd.el")
      (files (directory-files default-directory nil "\\`reminderd.*\\.el\\'"))
      (faults 0))
  (dolist (file files)
    (cl-flet ((fault (line text)
                (setq faults (1+ faults))
                (princ (format "%s:%s: %s\n" file line text))))
      (let* ((byte-compile-error-on-warn t)
             (byte-compile-dest-file-function
              (lambda (_) (expand-file-name (concat file "c")
                                            temporary-file-directory))))
        (unless (byte-compile-file (expand-file-name file))
          (fault 1 "does not compile without warnings")))
      (with-current-buffer (find-file-noselect file)
        (let ((checkdoc-create-error-function
               (lambda (text start _end &optional _)
                 (fault (line-number-at-pos start) text)
                 nil)))
          (checkdoc-current-buffer t))
        (pcase-dolist (`(,line ,_column ,_kind ,text) (package-lint-buffer))
          ;; The project has no public address yet.
          (unless (string-match-p "Homepage or URL" text)
            (fault line text))))))
  (princ (format "%d files, %d faults\n" (length files) faults))
  (kill-emacs (if (zerop faults) 0 1)))

;;; lint.el ends here
