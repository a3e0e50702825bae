package bus

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed answers every call on a closed part of the bus.
	// Nothing was sent.
	ErrClosed = errors.New("bus is closed")

	// ErrUnknownOutcome means that a message may be written: the answer
	// was lost, or the caller did not wait for it. After every other
	// error of a Publisher it is not written.
	ErrUnknownOutcome = errors.New("outcome unknown: written or not written")

	// ErrEncryption means that a process and a broker do not agree on
	// TLS: a certificate is wrong, or the broker's port has no TLS.
	ErrEncryption = errors.New("no TLS with the broker")

	// ErrTooLarge refuses a message that no batch can hold. Nothing was sent.
	ErrTooLarge = errors.New("message too large")

	// ErrUnknownTopic means that the brokers have no such topic. Nothing was sent.
	ErrUnknownTopic = errors.New("unknown topic")

	// ErrNotDelivered means that a message was not written within
	// its delivery timeout.
	ErrNotDelivered = errors.New("not delivered in time")

	// ErrFenced means that another consumer now owns the positions: the
	// transaction is rolled back.
	ErrFenced = errors.New("position is owned by another consumer")

	// ErrNeverRead means that the log lost its beginning before the
	// consumer read it.
	ErrNeverRead = errors.New("records are gone that were never read")
	// ErrOutsideLog means that a position is before the start or after
	// the end of its partition's log.
	ErrOutsideLog = errors.New("position outside the log")

	// ErrEndLost means that a position is after the end of its
	// partition's log. It comes with ErrOutsideLog.
	ErrEndLost = errors.New("the log has lost its end")

	// ErrLogDiffers means that a log has another record than the one that
	// a position has passed: it was shortened, and has grown since.
	ErrLogDiffers = errors.New("the log has another record than was applied")

	// ErrTopicReplaced means that a position or a snapshot is of a
	// deleted topic whose name another one has now.
	ErrTopicReplaced = errors.New("the topic was deleted and made again")
)

// IsLostEnd reports whether an error is about a log that lost records
// which were applied. Their offsets would come twice.
func IsLostEnd(err error) bool {
	return errors.Is(err, ErrEndLost) || errors.Is(err, ErrTopicReplaced) || errors.Is(err, ErrLogDiffers)
}

// PermanentError marks what no retry can fix.
type PermanentError struct {
	Err       error
	Record    bool // partition and offset name the record at fault
	Partition int
	Offset    int64
}

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent marks err as the fault of a record that can never be
// applied. After it a consumer finds the record by bisection and parks
// it. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// PermanentRecord is Permanent for a known record: it saves the bisection.
func PermanentRecord(r Record, err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err, Record: true, Partition: r.Partition, Offset: r.Offset}
}

// IsPermanent reports whether Permanent or PermanentRecord marked err
// or an error that it wraps.
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
