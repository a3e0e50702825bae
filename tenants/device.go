package tenants

import "time"

// DevicePrefix begins the secret by which a browser is recognized.
const DevicePrefix = "weirdev_"

// Bounds of devices: how long after its last sign-in one is recognized,
// how many a member has, and of how many members one browser is.
const (
	DeviceLifetime   = 90 * 24 * time.Hour
	MaxDevices       = 10
	MaxDeviceSecrets = 4
)

// A Device is a browser in which a member has signed in. It
// proves nothing: its attempts are only counted apart from
// others', which could use up the limit of the member's address.
type Device struct {
	Organization string // empty: unknown
	Member       string
	Hash         string // see SecretDigest
	Session      string // the last one started there
	UsedAt       time.Time
	ExpiresAt    time.Time
}

// Known reports whether the device is recognized.
func (d Device) Known() bool { return d.Hash != "" }
