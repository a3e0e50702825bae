package signin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

func keepDevice(t *testing.T, pool *pgxpool.Pool, number int, instead ...string) (replaced []string) {
	t.Helper()
	at := tenantstest.Noon.Add(time.Duration(number) * time.Minute)
	device := tenants.Device{
		Organization: "org_a", Member: "mem_a", Hash: deviceHash(number), Session: "ses_a", UsedAt: at, ExpiresAt: at.Add(tenants.DeviceLifetime),
	}
	err := asA(t, pool, func(tx pgx.Tx) (err error) {
		replaced, err = signin.ReplaceDevices(t.Context(), tx, device, instead)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return replaced
}

func asA(t *testing.T, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	t.Helper()
	return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "org_a"); err != nil {
			return err
		}
		return fn(tx)
	})
}

func deviceHash(number int) string { return fmt.Sprintf("%064x", number) }

// Only the last used devices of a member are kept, each until it is unused
// for long. A browser counts once, however often its member signs in there.
func TestDevicesAreBounded(t *testing.T) {
	pool := tenantstest.Open(t)
	views := signin.NewStore(query.NewReader(pool))
	known := func(number int, now time.Time) bool {
		device, err := views.DeviceOf(t.Context(), "a@example.com", []string{deviceHash(number)}, now)
		return err == nil && device.Member == "mem_a"
	}
	for i := range tenants.MaxDevices + 2 {
		keepDevice(t, pool, i)
	}
	for i := range tenants.MaxDevices + 2 {
		if got, want := known(i, tenantstest.Noon), i >= 2; got != want {
			t.Errorf("device %d is known: %t, want %t", i, got, want)
		}
	}
	if replaced := keepDevice(t, pool, 20, deviceHash(11), deviceHash(99)); len(replaced) != 1 || replaced[0] != deviceHash(11) {
		t.Errorf("replaced %v", replaced)
	}
	if !known(2, tenantstest.Noon) || known(11, tenantstest.Noon) || !known(20, tenantstest.Noon) {
		t.Error("a device that gets another secret takes the place of others")
	}
	if known(20, tenantstest.Noon.Add(20*time.Minute).Add(tenants.DeviceLifetime)) {
		t.Error("a device is known forever")
	}
	if _, err := views.DeviceOf(t.Context(), "b@example.com", []string{deviceHash(20)}, tenantstest.Noon); err == nil {
		t.Error("the device is another member's too")
	}
}
