package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"strandline/face/api/page"
	"strandline/input"
)

// maxDropped bounds the bytes of files that are dropped at once: they are kept in memory.
var maxDropped = int64(1 << 30)

// drop hands files over, and from then on what [Server.Open] shows answers.
func (s *Server) drop(w http.ResponseWriter, r *http.Request) {
	if !s.taking.TryLock() {
		reply(w, http.StatusConflict, page.Refusal{Error: "Other files are being handed over."})
		return
	}
	defer s.taking.Unlock()
	files, err := dropped(w, r)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		reply(w, http.StatusRequestEntityTooLarge, page.Refusal{Error: "The files have more than 1 GiB, which is more than this page keeps in memory. Start strandline view with them."})
	case err != nil || len(files) == 0:
		reply(w, http.StatusBadRequest, page.Refusal{Error: "The dropped items could not be read as files."})
	default:
		first, err := s.Open(files)
		if err != nil {
			reply(w, http.StatusUnprocessableEntity, page.Refusal{Error: err.Error()})
			return
		}
		reply(w, http.StatusOK, page.Opened{F: first})
	}
}

// named and inside are the names of a form's fields: before the path of a file that was dropped,
// and of one in a folder that was.
const named, inside = "named:", "inside:"

// dropped reads the files of a form.
func dropped(w http.ResponseWriter, r *http.Request) (out []input.Source, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDropped)
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		path, alone := strings.CutPrefix(part.FormName(), named)
		if !alone {
			inner, ok := strings.CutPrefix(path, inside)
			if !ok {
				continue
			}
			path = inner
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		out = append(out, input.Source{Path: path, Size: int64(len(data)), Named: alone, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}})
	}
}

func reply(w http.ResponseWriter, status int, doc any) {
	body, _ := json.Marshal(doc) // text and numbers do not fail
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(body)
}
