;;; reminderd-transcript.el --- Reminders kept in a chat buffer  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; What was told stays in the conversation: each message of reminders is kept
;; where it stood, as one line of text that shows as a collapsed row.  The line
;; holds the whole injection record, so that it survives in the file, on any
;; machine:
;;
;;     <!-- reminderd {"row": …, "record": …} -->       (in Org `#+reminderd:')
;;
;; The line carries gptel's text property `gptel' with the value
;; (reminderd . ID).  gptel sends no text with a property that it does not
;; know, but keeps it in the file beside its own.  Only lines with the property
;; count: a model that writes such a line has told nothing.
;;
;; Bodies quote files, so nothing that reads a chat's text may act on them.
;; Characters with which links, cookies of presets and the like are written
;; stand in the line as JSON escapes.

;;; Code:

(require 'cl-lib)
(require 'reminderd)
(require 'reminderd-view)

(defun reminderd-transcript--encode (kept)
  "Return KEPT, a plist, as JSON whose strings hold no active character."
  (with-temp-buffer
    (insert (decode-coding-string
             (json-serialize kept :null-object nil :false-object :json-false)
             'utf-8))
    (goto-char (point-min))
    (let (inside)
      (while (re-search-forward "\\\\.\\|[]\"[@<>$`{}]" nil t)
        (cond
         ((eq (char-after (match-beginning 0)) ?\\)) ;an escape already
         ((eq (char-before) ?\") (setq inside (not inside)))
         (inside (replace-match (format "\\u%04x" (char-before)) t t)))))
    (buffer-string)))

(defun reminderd-transcript--line (kept)
  "Return the line that keeps KEPT in this buffer's mode."
  (if (derived-mode-p 'org-mode)
      (concat "#+reminderd: " (reminderd-transcript--encode kept))
    (concat "<!-- reminderd " (reminderd-transcript--encode kept) " -->")))

(defun reminderd-transcript-read (begin end)
  "Return what the line between BEGIN and END keeps, and where it stands.
That is (KEPT BEGIN END), KEPT being a plist, or nil when the line was
damaged; nil when there is no such line."
  (save-excursion
    (goto-char begin)
    (when (re-search-forward "<!-- reminderd \\|#\\+reminderd: " end t)
      (list (condition-case nil
                (let ((kept (json-parse-buffer :object-type 'plist
                                               :null-object nil
                                               :false-object :json-false)))
                  (and (stringp (plist-get (plist-get kept :record) :id))
                       kept))
              (error nil))
            (match-beginning 0)
            (min end (line-end-position))))))

(defun reminderd-transcript-regions ()
  "Return a list of (BEGIN END) of the lines kept in this buffer, in order."
  (save-restriction
    (widen)
    (let ((position (point-min)) regions)
      (while (< position (point-max))
        (let ((next (next-single-property-change position 'gptel nil
                                                 (point-max))))
          (when (eq (car-safe (get-text-property position 'gptel)) 'reminderd)
            (push (list position next) regions))
          (setq position next)))
      (nreverse regions))))

(defun reminderd-transcript-records ()
  "Return the records that are kept in this buffer, in order."
  (cl-loop for (begin end) in (reminderd-transcript-regions)
           for kept = (car (reminderd-transcript-read begin end))
           when kept collect (plist-get kept :record)))

(defun reminderd-transcript-insert (record row)
  "Keep RECORD with its ROW at point, on a line of its own.
Leave point behind it."
  (let ((inhibit-read-only t))
    (unless (bolp) (insert "\n"))
    (let ((begin (point)))
      (insert (propertize (reminderd-transcript--line
                           (list :row row :record record))
                          'gptel (cons 'reminderd (plist-get record :id))))
      ;; Text that is put in before may have spread its own property.
      (put-text-property begin (point) 'gptel
                         (cons 'reminderd (plist-get record :id)))
      (reminderd-transcript--show begin (point)))))

;;;; Showing

(defvar reminderd-transcript-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'reminderd-transcript-toggle)
    (define-key map (kbd "TAB") #'reminderd-transcript-toggle)
    (define-key map [mouse-1] #'reminderd-transcript-toggle)
    map)
  "Keys on a collapsed row.")

(defun reminderd-transcript--show (begin end)
  "Show the line between BEGIN and END as its collapsed row."
  (let ((kept (car (reminderd-transcript-read begin end))))
    (when kept
      (let ((overlay (make-overlay begin end nil t)))
        (overlay-put overlay 'reminderd-transcript t)
        (overlay-put overlay 'reminderd kept)
        (overlay-put overlay 'evaporate t)
        (overlay-put overlay 'keymap reminderd-transcript-map)
        (overlay-put overlay 'help-echo "RET: show or hide the reminders")
        (reminderd-transcript--collapse overlay)))))

(defun reminderd-transcript--collapse (overlay)
  "Show OVERLAY's row alone; what told nothing shows nothing."
  (overlay-put overlay 'reminderd-expanded nil)
  (overlay-put overlay 'display
               (propertize (or (plist-get (overlay-get overlay 'reminderd)
                                          :row)
                               "")
                           'face 'reminderd-row)))

(defun reminderd-transcript--expand (overlay)
  "Show OVERLAY's row and the bodies behind it."
  (let ((kept (overlay-get overlay 'reminderd)))
    (overlay-put overlay 'reminderd-expanded t)
    (overlay-put overlay 'display
                 (concat (propertize (plist-get kept :row)
                                     'face 'reminderd-row)
                         "\n"
                         (reminderd-view-bodies
                          (plist-get (plist-get kept :record) :entries))))))

(defun reminderd-transcript-toggle (&optional event)
  "Show or hide the bodies of the reminders at point, or at EVENT."
  (interactive (list last-nonmenu-event))
  (let ((overlay (cl-find-if (lambda (overlay)
                               (plist-get (overlay-get overlay 'reminderd)
                                          :row))
                             (overlays-at (if (mouse-event-p event)
                                              (posn-point (event-start event))
                                            (point))))))
    (cond ((null overlay) (user-error "No reminders here"))
          ((overlay-get overlay 'reminderd-expanded)
           (reminderd-transcript--collapse overlay))
          (t (reminderd-transcript--expand overlay)))))

(defun reminderd-transcript-show ()
  "Show every line kept in this buffer as its row."
  (remove-overlays (point-min) (point-max) 'reminderd-transcript t)
  (pcase-dolist (`(,begin ,end) (reminderd-transcript-regions))
    (reminderd-transcript--show begin end)))

(provide 'reminderd-transcript)
;;; reminderd-transcript.el ends here
