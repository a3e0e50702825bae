package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// An attempt sends a request to one replica.
type attempt struct {
	request *http.Request
	done    func()      // is called once the answer was read, or there is none
	sent    atomic.Bool // it had a connection, so the replica may have seen the request
}

// withHost returns a copy of a request that goes to a host.
func withHost(ctx context.Context, request *http.Request, host string) *http.Request {
	request = request.WithContext(ctx)
	at := *request.URL
	at.Host, request.URL = host, &at
	return request
}

// send returns the answer of the replica at host, unless its ctx ends before
// the answer was read.
func (a *attempt) send(ctx context.Context, transport http.RoundTripper, host string) (*http.Response, error) {
	own, cancel := context.WithCancelCause(a.request.Context())
	detach := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	done := sync.OnceFunc(func() {
		detach()
		cancel(nil)
		a.done()
	})
	own = httptrace.WithClientTrace(own, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { a.sent.Store(true) }})
	request := withHost(own, a.request, host)
	if request.Body != nil && request.Body != http.NoBody {
		request.Body, request.GetBody = io.NopCloser(request.Body), nil // the next attempt may need it; the server closes it
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		if why := context.Cause(own); why != nil {
			err = why
		}
		done()
		return nil, err
	}
	answer.Body = &answerBody{answer.Body, done}
	return answer, nil
}

// An answerBody says when it was read.
type answerBody struct {
	io.ReadCloser
	done func()
}

func (b *answerBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
