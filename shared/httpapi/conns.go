package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"runtime"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi/connections"
)

// limit sets up the limits of connections.
func (s *Server) limit() error {
	files, err := connections.Files()
	if err != nil {
		return err
	}
	limits, err := s.Limits.Within(files)
	if err != nil {
		return err
	}
	s.connections = connections.New(connections.Config{
		Limits: limits, Network: s.network, Metrics: s.Metrics, Clock: s.Clock, Rates: s.rates,
	})
	processors := runtime.GOMAXPROCS(0)
	s.handshakes = fairshare.NewLimiter(fairshare.Limits{
		Capacity: int64(2 * processors), PerKey: int64(max(1, processors/2)), Leases: limits.PerNetwork, Queue: limits.Total, Wait: readHeaderTimeout,
	})
	return nil
}

// network returns the network that a connection counts for.
func (s *Server) network(remote net.Addr) (network netip.Prefix, trusted bool) {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}, false
	}
	client := peer.Addr().Unmap()
	return ClientNetwork(client), within(s.TrustedProxies, client)
}

// queueHandshakes computes handshakes in turn, network by network: a
// signature costs the server more than the client. A turn lasts from
// the client's first message until the answer is sent, without waiting
// for the client. After a HelloRetryRequest, which costs nothing, the
// handshake asks for its turn again with the certificate.
func (s *Server) queueHandshakes(config *tls.Config) *tls.Config {
	config = config.Clone()
	given := config.GetCertificate
	if given == nil {
		certificates := config.Certificates
		given = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return choose(certificates, hello) }
	}
	config.NextProtos = []string{protoHTTP2, protoHTTP1}
	config.Certificates = nil // else clients that name no server bypass GetCertificate
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, s.awaitHandshake(hello) }
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if err := s.awaitHandshake(hello); err != nil {
			return nil, err
		}
		return given(hello)
	}
	return config
}

// choose returns the first certificate that a client can use, or
// else the first.
func choose(certificates []tls.Certificate, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	for i := range certificates {
		if hello.SupportsCertificate(&certificates[i]) == nil {
			return &certificates[i], nil
		}
	}
	if len(certificates) == 0 {
		return nil, errors.New("the server has no certificate")
	}
	return &certificates[0], nil
}

// awaitHandshake waits for a handshake's turn, unless it has it.
func (s *Server) awaitHandshake(hello *tls.ClientHelloInfo) error {
	conn, ok := hello.Conn.(*connections.Conn)
	if !ok || conn.AwaitsIO() {
		return nil
	}
	return s.awaitTurn(hello.Context(), conn)
}

func (s *Server) awaitTurn(ctx context.Context, conn *connections.Conn) error {
	network, _ := s.network(conn.RemoteAddr())
	lease, err := s.handshakes.Acquire(ctx, network.String(), 1)
	if err != nil {
		conn.Refuse(connections.HandshakeQueue)
		return err
	}
	conn.BeforeIO(lease.Release)
	return nil
}
