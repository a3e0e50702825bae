package tenants

import (
	"errors"
	"strings"
)

// Why a command is refused; see also Invalid.
var (
	// ErrNotFound is for what does not exist or
	// is another organization's: they look alike.
	ErrNotFound = errors.New("there is no such thing")
	// ErrReused means that an Idempotency-Key
	// was used before with another request.
	ErrReused = errors.New("the idempotency key was used for another request")
	// ErrShownOnce means that the request was answered
	// before with a secret, which can't be shown again.
	ErrShownOnce = errors.New("the secret was shown once and is not kept")
	// ErrForbidden means that the caller may not do this.
	ErrForbidden = errors.New("the caller may not do this")
)

// A Fault is one value that can't be accepted.
type Fault struct {
	Field  string // its name in the API
	Detail string // names the value
	Fix    string // the way out
}

// Invalid lists all faults of a command, so that they can be fixed at once.
type Invalid []Fault

// Error lists the faults.
func (i Invalid) Error() string {
	var texts []string
	for _, fault := range i {
		texts = append(texts, fault.Detail)
	}
	return strings.Join(texts, " ")
}

// orNil is nil without faults, as an empty Invalid is not a nil error.
func (i Invalid) orNil() error {
	if len(i) == 0 {
		return nil
	}
	return i
}
