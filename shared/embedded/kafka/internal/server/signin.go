package server

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/scram"
)

func (s *Server) saslHandshake(c *call, request kmsg.Request) (kmsg.Response, error) {
	response := request.ResponseKind().(*kmsg.SASLHandshakeResponse)
	response.SupportedMechanisms = []string{scram.Mechanism}
	mechanism := request.(*kmsg.SASLHandshakeRequest).Mechanism
	switch {
	case s.Secret == nil:
		response.ErrorCode = kerr.IllegalSaslState.Code
	case mechanism != scram.Mechanism:
		response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		return response, refuse("a sign-in was refused: only "+scram.Mechanism+" is known", "mechanism", mechanism)
	default:
		c.signIn = s.Secret.Begin()
	}
	return response, nil
}

func (s *Server) saslAuthenticate(c *call, request kmsg.Request) (kmsg.Response, error) {
	if c.signIn == nil {
		return nil, refuse("a sign-in was refused: it did not begin with a handshake")
	}
	response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	answer, done, err := c.signIn.Step(request.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes)
	if err != nil {
		response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		response.ErrorMessage = text(scram.ErrRefused)
		if !errors.Is(err, scram.ErrRefused) {
			return response, refuse("a sign-in was refused", "error", err)
		}
		return response, refuse("a sign-in was refused: " + scram.ErrRefused.Error())
	}
	response.SASLAuthBytes = answer
	if done {
		c.signIn = nil
		_ = c.socket.SetReadDeadline(time.Time{})
		c.admitted.Store(true)
	}
	return response, nil
}
