package api

import (
	"time"

	"github.com/weirlog/weir/tenants"
)

// Optional is nil, null in JSON, for the zero time.
func Optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// OrNull is null for the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// Reason is null unless revoked.
func Reason(revocation tenants.Revocation) *string {
	if revocation.At.IsZero() {
		return nil
	}
	return &revocation.Reason
}
