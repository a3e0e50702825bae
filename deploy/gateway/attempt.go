package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// An attempt sends a request to one replica.
type attempt struct {
	request *http.Request
	ended   func() // is called once the answer was read, or there is none

	mu   sync.Mutex
	read bool // something of the body was asked for
	over bool // nothing more of it may be
}

// aim returns a copy of a request that goes to a host.
func aim(ctx context.Context, request *http.Request, host string) *http.Request {
	request = request.WithContext(ctx)
	at := *request.URL
	at.Host, request.URL = host, &at
	return request
}

// send returns the answer of the replica at host, unless here ends before it
// was read.
func (a *attempt) send(here context.Context, transport http.RoundTripper, host string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(a.request.Context())
	detach := context.AfterFunc(here, func() { cancel(context.Cause(here)) })
	end := sync.OnceFunc(func() {
		detach()
		cancel(nil)
		a.ended()
	})
	request := aim(ctx, a.request, host)
	if request.Body != nil && request.Body != http.NoBody {
		request.Body, request.GetBody = (*attemptBody)(a), nil
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			err = why
		}
		end()
		return nil, err
	}
	answer.Body = &answerBody{answer.Body, end}
	return answer, nil
}

// mayRepeat reports whether a request that failed has had no effect, or never
// has one, and ends the attempt.
func (a *attempt) mayRepeat(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return true
	}
	if a.request.Body == nil || a.request.Body == http.NoBody {
		return a.request.Method == http.MethodGet || a.request.Method == http.MethodHead
	}
	return !a.read
}

// An attemptBody is the request's body. Closing it leaves that open, for the
// next attempt: the server closes it.
type attemptBody attempt

func (b *attemptBody) Read(into []byte) (int, error) {
	b.mu.Lock()
	over := b.over
	b.read = b.read || !over
	b.mu.Unlock()
	if over {
		return 0, errSilent
	}
	return b.request.Body.Read(into)
}

func (b *attemptBody) Close() error { return nil }

// An answerBody says when it was read.
type answerBody struct {
	io.ReadCloser
	end func()
}

func (b *answerBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
