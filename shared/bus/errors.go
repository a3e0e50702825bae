package bus

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed answers every call on something that was closed. Nothing was sent.
	ErrClosed = errors.New("bus is closed")

	// ErrUnknownOutcome means that a message may be written or not: the
	// answer was lost, or the caller did not wait for it. Every other
	// error of a Publisher means: not written.
	ErrUnknownOutcome = errors.New("outcome unknown: written or not written")

	// ErrEncryption means that a process and a broker do not agree on TLS: a
	// certificate is wrong, or the broker's port speaks none.
	ErrEncryption = errors.New("no TLS with the broker")

	// ErrTooLarge refuses a message that no batch can hold. Nothing was sent.
	ErrTooLarge = errors.New("message too large")

	// ErrUnknownTopic means that the brokers have no such topic. Nothing was sent.
	ErrUnknownTopic = errors.New("unknown topic")

	// ErrNotDelivered means that a message could not be written before its
	// delivery timeout, and was not written.
	ErrNotDelivered = errors.New("not delivered in time")

	// ErrFenced means that another consumer owns the positions
	// now: what was applied is rolled back.
	ErrFenced = errors.New("position is owned by another consumer")

	// ErrNeverRead means that the beginning of a partition's log is
	// gone before the consumer has read it.
	ErrNeverRead = errors.New("records are gone that were never read")
	// ErrOutsideLog means that a position is before the start or
	// after the end of its partition's log.
	ErrOutsideLog = errors.New("position outside the log")

	// ErrTopicReplaced means that a position or a snapshot is of a
	// deleted topic; another has its name now.
	ErrTopicReplaced = errors.New("the topic was deleted and made again")
)

// PermanentError marks what no repetition can heal.
type PermanentError struct {
	Err       error
	Record    bool // partition and offset name the record to blame
	Partition int
	Offset    int64
}

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent marks err as the fault of a record that can never be
// applied. A Handler returns it to have the record found by
// bisection and parked. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// PermanentRecord is Permanent with the record at fault: it saves the bisection.
func PermanentRecord(r Record, err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err, Record: true, Partition: r.Partition, Offset: r.Offset}
}

// IsPermanent reports whether err, or an error that it wraps, was
// marked by Permanent or PermanentRecord.
func IsPermanent(err error) bool {
	var marked *PermanentError
	return errors.As(err, &marked)
}

// PanicError is a handler's panic as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v\n%s", e.Value, e.Stack) }
