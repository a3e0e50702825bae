package soak

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A receiver accepts what webhooks send, and sometimes fails.
type receiver struct {
	server *http.Server
	url    string
}

// failsEvery so many requests, one fails.
const failsEvery = 10

func startReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for webhooks: %w", err)
	}
	var requests atomic.Int64
	r := &receiver{url: "http://" + listener.Addr().String()}
	r.server = &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%failsEvery == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	r.server.SetKeepAlivesEnabled(false) // so that what a start before has left open ends
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) stop() error { return r.server.Close() }
