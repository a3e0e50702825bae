package webhook

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// Reason returns why there was no answer, in fixed words for the
// receiver: an error may have addresses, names and the resolver of this
// network. Names that do not exist and those of this network read alike.
func Reason(err error) string {
	var lookup *net.DNSError
	var connection *net.OpError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrUnknownKey):
		return "Its secret follows from a key that is configured no more: rotate the secret."
	case errors.Is(err, ErrRedirect):
		return "The endpoint answered with a redirect, which is not followed."
	case errors.Is(err, ErrUnreachable), errors.As(err, &lookup):
		return "The URL leads to no public address, by port 443 or one from 1024."
	case errors.As(err, &connection) && connection.Op == "dial":
		return "The endpoint takes no connection."
	case errors.As(err, &certificate):
		return "The endpoint's certificate is not valid: it is for another name, has expired, or is from an unknown authority."
	case errors.As(err, &timeout) && timeout.Timeout():
		return "The endpoint did not answer in time."
	}
	return "The endpoint gave no answer that can be read."
}

// LogReason returns why there was no answer, for the log: a log outlives
// a deleted endpoint, so it has neither names nor addresses of it.
func LogReason(err error) string {
	var lookup *net.DNSError
	var number syscall.Errno
	switch {
	case errors.Is(err, ErrUnknownKey):
		return err.Error() // which names the missing key
	case errors.Is(err, ErrUnreachable):
		return ErrUnreachable.Error()
	case errors.As(err, &lookup):
		return lookup.Err
	case errors.As(err, &number):
		return number.Error()
	}
	return Reason(err)
}
