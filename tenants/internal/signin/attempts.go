package signin

import (
	"crypto/sha256"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/tenants/internal/password"
)

// Limits of attempts to prove one's identity: a burst, then so many
// a minute, per process. Attempts for an address from a device known
// to its member count for that device alone: others who try to sign
// in as a member, or from the same network, must not lock them out.
// Confirmations of signed-in members are also counted apart.
const (
	perNetwork    = 20
	networkRefill = 4
	perEmail      = 10
	emailRefill   = 2
	perDevice     = 10
	deviceRefill  = 2
	perMember     = 10
	memberRefill  = 2
)

// maxTracked is how many names each limit tracks. Each kind has
// its own table: ever new networks must not evict an address.
const maxTracked = 100_000

// attempts limits how often something is tried under a name. Names are stored
// as hashes, so that a long one costs no more. Safe for concurrent use.
type attempts struct {
	clock     func() time.Time
	burst     int
	perMinute int
	table     *fairshare.Table[[sha256.Size]byte]
}

func newAttempts(clock func() time.Time, burst, perMinute int) *attempts {
	return &attempts{clock, burst, perMinute, fairshare.NewTable[[sha256.Size]byte](maxTracked)}
}

// take counts one attempt under name, or returns
// how long to wait for the next one: 0: counted.
func (a *attempts) take(name string) (wait time.Duration) {
	return a.table.Take(a.clock(), fairshare.KeyLimit[[sha256.Size]byte]{
		Scope: fairshare.ScopeClient, Key: sha256.Sum256([]byte(name)), PerMinute: a.perMinute, Burst: a.burst,
	}).RetryAfter
}

// Outcomes of attempts to sign in with a password, as metrics have them.
const (
	outcomeIn      = "signed_in"
	outcomeWrong   = "wrong"
	outcomeLimited = "limited" // too many attempts before
	outcomeOff     = "passwords_off"
	outcomeBusy    = "busy" // too many others at the same time
)

// metrics counts sign-ins.
type metrics struct {
	signIns *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, passwords *password.Hasher) *metrics {
	with := promauto.With(registerer)
	m := &metrics{with.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_tenants_sign_ins_total", Help: "Attempts to sign in with a password, by how they ended and whether the device was known.",
	}, []string{"outcome", "device"})}
	for _, outcome := range []string{outcomeIn, outcomeWrong, outcomeLimited, outcomeOff, outcomeBusy} {
		m.signIns.WithLabelValues(outcome, deviceWord(true)) // exported as 0, so that the first one is an increase
		m.signIns.WithLabelValues(outcome, deviceWord(false))
	}
	gauge := func(name, help string, read func() int) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_tenants_password_hashes_" + name, Help: help}, func() float64 { return float64(read()) })
	}
	gauge("anonymous", "Passwords that are being hashed for unknown devices, or whose place rests.", func() int { return passwords.Anonymous().Held })
	gauge("anonymous_waiting", "Passwords of unknown devices that wait to be hashed.", func() int { return passwords.Anonymous().Waiting })
	gauge("known", "Passwords that are being hashed for known devices and members.", func() int { return passwords.Known().Held })
	gauge("known_waiting", "Passwords of known devices and members that wait to be hashed.", func() int { return passwords.Known().Waiting })
	return m
}

func deviceWord(known bool) string {
	if known {
		return "known"
	}
	return "unknown"
}

// signIn counts an attempt.
func (m *metrics) signIn(outcome string, knownDevice bool) {
	m.signIns.WithLabelValues(outcome, deviceWord(knownDevice)).Inc()
}
