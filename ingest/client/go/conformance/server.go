package conformance

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
)

// A Server answers as Weir does, and fails as it is told.
type Server struct {
	*httptest.Server

	// Fault may answer the n-th request, from 1 on, instead of Weir. It says
	// whether it has. What it calls keep with is stored before.
	Fault func(n int, keep func(), w http.ResponseWriter) bool

	mu       sync.Mutex
	requests int
	keys     map[string][sha256.Size]byte // of bodies, by Idempotency-Key
	Entries  map[string]int               // message → how often it was stored
	Notices  int                          // what clients say that they dropped
	Reused   int                          // keys that came with another body
}

// NewServer returns one with TLS. Its answers leave out what no test needs.
func NewServer() *Server {
	s := &Server{keys: map[string][sha256.Size]byte{}, Entries: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = quiet
	s.StartTLS()
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := read(r)
	if err != nil {
		Problem(w, http.StatusBadRequest, "incomplete_body")
		return
	}
	s.mu.Lock()
	s.requests++
	n, fault := s.requests, s.Fault
	s.mu.Unlock()
	keep := func() { s.keep(r.Header.Get("Idempotency-Key"), body) }
	if fault != nil && fault(n, keep, w) {
		return
	}
	keep()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"message":"ok","processed":1,"bytes_used":%d,"rejected":0}`, len(body))
}

func read(r *http.Request) ([]byte, error) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// keep stores a batch, once for each key.
func (s *Server) keep(key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(body)
	if before, known := s.keys[key]; known {
		if before != sum {
			s.Reused++
		}
		return
	}
	s.keys[key] = sum
	var batch struct {
		Logs []struct {
			Message  string
			Metadata struct {
				Dropped map[string]int `json:"dropped_by_client"`
			}
		}
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		panic(err)
	}
	for _, entry := range batch.Logs {
		if entry.Metadata.Dropped == nil {
			s.Entries[entry.Message]++
		}
		for _, n := range entry.Metadata.Dropped {
			s.Notices += n
		}
	}
}

// Refuse answers all requests from now on with a problem; with none if the
// status is 0.
func (s *Server) Refuse(status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Fault = func(_ int, _ func(), w http.ResponseWriter) bool {
		if status != 0 {
			Problem(w, status, code)
		}
		return status != 0
	}
}

// Requests returns how many came.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// CAFile writes what a client of the server has to trust.
func (s *Server) CAFile(folder string) (string, error) {
	file := filepath.Join(folder, "ca.pem")
	return file, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600)
}

// Problem answers as Weir does where it refuses.
func Problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"As the test has it."}`, status, code)
}
