package bus

import (
	"context"
	"fmt"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

// bearer signs in with a token (RFC 7628), which names the user and expires.
type bearer struct{ token string }

// Name implements sasl.Mechanism.
func (bearer) Name() string { return bearerMechanism }

// Start implements sasl.Mechanism.
func (b bearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	return &bearerSession{}, []byte("n,,\x01auth=Bearer " + b.token + "\x01\x01"), nil
}

// bearerSession is one sign-in.
type bearerSession struct{ refusal []byte }

// Next implements sasl.StateMachine. A server that refuses gives a
// reason, and ends the sign-in only after one byte in answer to it.
func (b *bearerSession) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if b.refusal != nil {
		return false, nil, fmt.Errorf("%w: %s", kafka.SASLAuthenticationFailed, b.refusal)
	}
	if len(challenge) == 0 {
		return true, nil, nil
	}
	b.refusal = challenge
	return false, []byte{1}, nil
}
