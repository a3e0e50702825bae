package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
)

// A Backend is one module as the gateway sees it.
type Backend struct {
	Handler http.Handler      // serves the module's full paths, and its part of /v1/openapi.json
	Ready   httpapi.Readiness // nil once the module can serve
}

// Local is a module in this process.
func Local(handler http.Handler, ready func() error, behind func() []httpapi.Backlog) Backend {
	return Backend{Handler: handler, Ready: func(context.Context) ([]httpapi.Backlog, error) { return behind(), ready() }}
}

// ask sends a GET through a backend's handler and returns the answer's body.
func (b Backend) ask(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	request.RemoteAddr = "127.0.0.1:0"
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	b.Handler.ServeHTTP(answer, request)
	if answer.status != http.StatusOK {
		return nil, fmt.Errorf("GET %s is answered with %d", path, answer.status)
	}
	return answer.body.Bytes(), nil
}

// A recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header            { return r.header }
func (r *recorder) WriteHeader(status int)         { r.status = status }
func (r *recorder) Write(text []byte) (int, error) { return r.body.Write(text) }
