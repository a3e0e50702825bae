package fairness

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// network returns a local address in its own client network.
func network(number int) net.IP {
	return net.IPv4(127, byte(1+number>>16&0x3f), byte(number>>8), byte(2+number%250))
}

// guessPasswords signs in as a member and as an unknown person, each
// time from another network.
func guessPasswords(ctx context.Context, n *noisy) error {
	var tries atomic.Int64
	return repeat(ctx, 32, func(int) error {
		number := int(tries.Add(1))
		email := n.ConsoleEmail
		if number%2 == 0 {
			email = fmt.Sprintf("nobody%d@example.com", number)
		}
		return n.guess(ctx, network(rand.IntN(1<<22)), email)
	})
}

func (n *noisy) guess(ctx context.Context, from net.IP, email string) error {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: n.tls, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return n.dial(ctx, from)
	}}
	r, err := n.wrongSignIn(ctx, email)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport, CheckRedirect: n.http.CheckRedirect}).Do(r)
	if err != nil {
		if ctx.Err() == nil {
			n.outcome.count("closed")
		}
		return err
	}
	n.outcome.read(answer)
	return nil
}

// wrongSignIn is a sign-in with a wrong password.
func (n *noisy) wrongSignIn(ctx context.Context, email string) (*http.Request, error) {
	form := url.Values{"email": {email}, "password": {"correct horse " + email}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.ConsoleURL+"/sign-in", strings.NewReader(form.Encode()))
	if err == nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r, err
}

// createProjects creates projects until ctx ends.
func createProjects(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	return repeat(ctx, senders, func(int) error {
		body := fmt.Sprintf(`{"organization":%q,"name":"project %d"}`, n.Tenant.Organization, serial.Add(1))
		header := http.Header{"Authorization": {"Bearer " + n.AdminToken}, "Content-Type": {"application/json"}}
		return n.ask(ctx, http.MethodPost, n.BaseURL+"/projects", header, []byte(body))
	})
}

// Sockets: how many are opened, if this process may, by how many goroutines.
const (
	maxSockets = 22_000
	openers    = 64
	openPause  = 12 * time.Millisecond // of each opener: at most 5,000 a second, or opening them takes more of the shared processors than the target
	spareFiles = 200                   // of this process, for all else
)

// silence opens sockets from so many networks, sends nothing on them,
// and replaces closed ones.
func silence(networks int) func(ctx context.Context, n *noisy) error {
	return func(ctx context.Context, n *noisy) error {
		limit, err := openFiles()
		if err != nil {
			return err
		}
		sockets := min(maxSockets, limit-spareFiles)
		var serial atomic.Int64
		free := make(chan struct{}, sockets)
		return repeat(ctx, openers, func(int) error {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			conn, err := (&net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: network(int(serial.Add(1)) % networks)}}).DialContext(ctx, "tcp", n.host)
			if err != nil {
				<-free
				n.outcome.count("refused")
				return err
			}
			n.outcome.count("opened")
			go func() {
				defer func() { <-free }()
				n.listen(ctx, conn.(*net.TCPConn))
			}()
			lifecycle.Pause(ctx, openPause)
			return nil
		})
	}
}

// listen waits until the other end closes a silent connection.
func (n *noisy) listen(ctx context.Context, conn *net.TCPConn) {
	defer conn.Close()
	_ = conn.SetLinger(0) // no end keeps the closed connection's state
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, _ = conn.Read(make([]byte, 1))
	if ctx.Err() == nil {
		n.outcome.count("closed")
	}
}

// handshake returns how long it takes to open a TLS connection: a
// newcomer's first wait.
func handshake(ctx context.Context, host string, config *tls.Config) (time.Duration, error) {
	begun := time.Now()
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: probeTimeout}, Config: config}).DialContext(ctx, "tcp", host)
	if err != nil {
		return 0, err
	}
	return time.Since(begun), conn.Close()
}
