package signin

import (
	"net/http"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// deviceCookie holds the secrets by which a browser
// is recognized. It does not prove who uses it.
const deviceCookie = "__Host-weir-device"

// deviceSeparator separates the secrets: several members may share a browser.
const deviceSeparator = "."

// Bounds of device lookups. A forged cookie can cause them
// before any attempt is counted, so networks take turns.
const (
	lookups           = 2
	lookupsPerNetwork = 1
	lookupsWaiting    = 16   // for one network
	lookupsQueued     = 1024 // in all
	lookupTimeout     = 3 * time.Second
)

func newLookups() *fairshare.Limiter {
	return fairshare.NewLimiter(fairshare.Limits{
		Capacity: lookups, PerKey: lookupsPerNetwork, Leases: lookupsPerNetwork + lookupsWaiting, Queue: lookupsQueued, Wait: lookupTimeout,
	})
}

// devicesOf is what may be secrets in a browser's cookie.
func devicesOf(r *http.Request) (secrets []tenants.Secret) {
	cookie, err := r.Cookie(deviceCookie)
	if err != nil {
		return nil
	}
	for text := range strings.SplitSeq(cookie.Value, deviceSeparator) {
		secret, err := tenants.ParseSecret(tenants.DevicePrefix, text)
		if err == nil && len(secrets) < tenants.MaxDeviceSecrets {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// keepDevices stores the secrets in the browser.
func keepDevices(w http.ResponseWriter, secrets []tenants.Secret) {
	texts := make([]string, len(secrets))
	for i, secret := range secrets {
		texts[i] = secret.Reveal()
	}
	http.SetCookie(w, &http.Cookie{
		Name: deviceCookie, Value: strings.Join(texts, deviceSeparator), Path: "/", MaxAge: int(tenants.DeviceLifetime / time.Second),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// recognized is an anonymous request, with the device by which the browser
// is known to the member with an address. While too many
// wait, it fails with an error of the Limiter.
func (p *Pages) recognized(r *http.Request, email string) (unitofwork.Request, error) {
	request := p.anonymous(r)
	if len(request.Devices) == 0 {
		return request, nil
	}
	lease, err := p.lookups.Acquire(r.Context(), p.network(r), 1)
	if err != nil {
		return request, err
	}
	defer lease.Release()
	request.Device, err = p.services.Sessions.Recognize(r.Context(), email, request.Devices)
	return request, err
}
