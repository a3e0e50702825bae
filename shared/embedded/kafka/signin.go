package kafka

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// unauthenticatedBytes is the largest request taken from a
// client that has not signed in.
const unauthenticatedBytes = 64 << 10

// unauthenticatedRequests are all that an unauthenticated client may send. kfake
// refuses the others too, but only after reading them.
var unauthenticatedRequests = []kmsg.Key{kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate}

// signInSteps is how many answers a sign-in takes. kfake sends the last only
// for a right proof, and hangs up otherwise.
const signInSteps = 2

// A signIn is how far a connection has come with it.
type signIn struct {
	mu       sync.Mutex
	number   uint32 // of the step that is not answered yet
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

// refused reports whether the broker hangs up instead of an answer.
func (s *signIn) refused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}
