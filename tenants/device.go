package tenants

import "time"

// DevicePrefix begins the secret by which a browser is recognized.
const DevicePrefix = "weirdev_"

// Bounds of devices: how long after its last sign-in one is recognized, how
// many of a member are, and of how many members a browser is.
const (
	DeviceLifetime   = 90 * 24 * time.Hour
	MaxDevices       = 10
	MaxDeviceSecrets = 4
)

// A Device is a browser in which a member has signed in before. It proves
// nothing: its attempts are only counted apart from those of strangers, who
// could use up the limit of the member's address.
type Device struct {
	Organization string // empty: it is not known
	Member       string
	Hash         string // see SecretDigest
	Session      string // the last that was started there
	UsedAt       time.Time
	ExpiresAt    time.Time
}

// Known reports whether this is a device at all.
func (d Device) Known() bool { return d.Hash != "" }
