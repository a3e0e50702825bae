package registrar

import (
	"context"
	"errors"
	"slices"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// Recognize returns the device by which a browser with some secrets is known to the member with an address, or one that is
// not known. It says nothing about whether there is such a member.
func (r *Registrar) Recognize(ctx context.Context, email string, secrets []tenants.Secret) (tenants.Device, error) {
	if len(secrets) == 0 || !tenants.IsEmail(email) {
		return tenants.Device{}, nil
	}
	device, err := r.Views.DeviceOf(ctx, tenants.NormalEmail(email), hashesOf(secrets), r.now())
	if errors.Is(err, tenants.ErrNotFound) {
		err = nil
	}
	return device, err
}

// askerOf is whose turn it is when a password is hashed for a request.
func askerOf(r Request) password.Asker {
	switch {
	case r.Device.Known():
		return password.Known(r.Device.Organization)
	case r.Caller.ID != "":
		return password.Known(r.Caller.Organization)
	}
	return password.Stranger(httpapi.ClientNetwork(r.Address).String())
}

// keepDevice makes the browser of a request known to a member who has signed in there, under another secret than before.
func (t *turn) keepDevice(ctx context.Context, session tenants.Session) ([]tenants.Secret, error) {
	secret, err := tenants.NewSecret(tenants.DevicePrefix, t.Random)
	if err != nil {
		return nil, err
	}
	now := t.now()
	device := tenants.Device{
		Organization: session.Organization, Member: session.Member, Hash: secret.Digest().Hash, Session: session.ID,
		UsedAt: now, ExpiresAt: now.Add(tenants.DeviceLasts),
	}
	replaced, err := postgres.KeepDevice(ctx, t.tx, device, hashesOf(t.request.Devices))
	if err != nil {
		return nil, err
	}
	kept := append([]tenants.Secret{secret}, slices.DeleteFunc(slices.Clone(t.request.Devices), func(s tenants.Secret) bool {
		return slices.Contains(replaced, s.Digest().Hash)
	})...)
	return kept[:min(len(kept), tenants.MaxDeviceSecrets)], nil
}

// forgetDevices makes strangers of the browsers of a member, but of the one that asks where it is to stay.
func (t *turn) forgetDevices(ctx context.Context, member tenants.Member, except []tenants.Secret) error {
	return postgres.ForgetDevices(ctx, t.tx, pg.Organization(member.Organization), member.ID, hashesOf(except))
}

func hashesOf(secrets []tenants.Secret) []string {
	hashes := make([]string, len(secrets))
	for i, secret := range secrets {
		hashes[i] = secret.Digest().Hash
	}
	return hashes
}
