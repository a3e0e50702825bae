package kafka

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// unauthenticatedBytes is the largest request accepted from
// an unauthenticated client.
const unauthenticatedBytes = 64 << 10

// unauthenticatedRequests are all that an unauthenticated client may
// send. kfake refuses the others too, but only after reading them.
var unauthenticatedRequests = []kmsg.Key{kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate}

// signInSteps is how many answers a sign-in takes. kfake sends the last
// only for a right proof, and otherwise closes the connection.
const signInSteps = 2

// A signIn is a connection's progress in signing in.
type signIn struct {
	mu       sync.Mutex
	number   uint32 // of the unanswered step
	asked    bool   // there is one
	answered int
}

func (s *signIn) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered >= signInSteps
}

// admits reports whether a request may reach the broker.
func (s *signIn) admits(size uint32, key kmsg.Key) bool {
	return s.done() || slices.Contains(unauthenticatedRequests, key) && size <= unauthenticatedBytes
}

func (s *signIn) ask(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number, s.asked = number, true
}

func (s *signIn) answer(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked && s.number == number {
		s.asked = false
		s.answered++
	}
}

// refused reports whether the broker closes the connection without an answer.
func (s *signIn) refused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}
