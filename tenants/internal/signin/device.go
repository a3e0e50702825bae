package signin

import (
	"context"
	"errors"
	"slices"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Recognize returns the device by which a browser with some
// secrets is known to the member with an address, or an unknown
// one. It does not reveal whether there is such a member.
func (s *Sessions) Recognize(ctx context.Context, email string, secrets []tenants.Secret) (tenants.Device, error) {
	if len(secrets) == 0 || !tenants.IsEmail(email) {
		return tenants.Device{}, nil
	}
	device, err := s.store.DeviceOf(ctx, tenants.NormalEmail(email), hashesOf(secrets), s.Work.Now())
	if errors.Is(err, tenants.ErrNotFound) {
		err = nil
	}
	return device, err
}

// keepDevice stores a request's browser as
// its member's device, under a new secret.
func keepDevice(ctx context.Context, u *unitofwork.Unit, session tenants.Session) ([]tenants.Secret, error) {
	secret, err := tenants.NewSecret(tenants.DevicePrefix, u.Random)
	if err != nil {
		return nil, err
	}
	now, before := u.Now(), u.Request().Devices
	device := tenants.Device{
		Organization: session.Organization, Member: session.Member, Hash: secret.Digest().Hash, Session: session.ID,
		UsedAt: now, ExpiresAt: now.Add(tenants.DeviceLifetime),
	}
	replaced, err := replaceDevices(ctx, u.Tx(), device, hashesOf(before))
	if err != nil {
		return nil, err
	}
	kept := append([]tenants.Secret{secret}, slices.DeleteFunc(slices.Clone(before), func(s tenants.Secret) bool {
		return slices.Contains(replaced, s.Digest().Hash)
	})...)
	return kept[:min(len(kept), tenants.MaxDeviceSecrets)], nil
}

func hashesOf(secrets []tenants.Secret) []string {
	hashes := make([]string, len(secrets))
	for i, secret := range secrets {
		hashes[i] = secret.Digest().Hash
	}
	return hashes
}
