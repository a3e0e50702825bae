package api

import (
	"time"

	"github.com/weirlog/weir/tenants"
)

// Optional is nil for the zero time, which is null in JSON.
func Optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// Given is null for the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// Reason is null for what is not revoked.
func Reason(revocation tenants.Revocation) *string {
	if revocation.At.IsZero() {
		return nil
	}
	return &revocation.Reason
}
