package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/people"
)

// signInMethods are the ways to sign in here, beside passwords.
func signInMethods(party *passkey.RelyingParty, provider *oidc.Provider) people.SignInMethods {
	methods := people.SignInMethods{Passkeys: party != nil}
	if provider != nil {
		methods.Provider = provider.Issuer
	}
	return methods
}

// relyingParty is the site that passkeys belong to; nil: there can't be any.
func (a *App) relyingParty() *passkey.RelyingParty {
	origin, err := a.config.origin()
	if err != nil || origin == "" {
		a.base.Logger.Info("passkeys are off: the console's origin is not configured", slog.String("setting", "WEIR_CONSOLE_ORIGIN"))
		return nil
	}
	party, err := passkey.New(origin)
	if err != nil {
		a.base.Logger.Warn("passkeys are off", slog.String("error", err.Error()))
		return nil
	}
	return party
}

func (a *App) droppedFailures() prometheus.Counter {
	return promauto.With(a.base.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_tenants_sign_in_failures_dropped_total",
		Help: "Failed sign-ins that are not in the audit, because there were too many addresses at the same time.",
	})
}
