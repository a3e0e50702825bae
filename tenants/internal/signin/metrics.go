package signin

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/tenants/internal/password"
)

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
