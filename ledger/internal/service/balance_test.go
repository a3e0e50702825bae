package service_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
)

// The balance at an instant is that of its period by what was booked until then.
func TestBalanceAt(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	later, december := ledgertest.November.Add(time.Hour), ledgertest.November.AddDate(0, 1, 0)
	l.Book(t, l.NewCharge("acme", 30))
	l.SetClock(later)
	l.Book(t, l.NewCharge("acme", 20))
	l.SetClock(december)
	l.Book(t, l.NewCharge("acme", 5))
	tests := []struct {
		at   time.Time
		used int64
	}{
		{ledgertest.November.Add(-time.Second), 0}, {ledgertest.November, 30}, {later.Add(-time.Microsecond), 30}, {later, 50},
		{december.AddDate(0, 0, -1), 0}, {december, 5},
	}
	for _, test := range tests {
		b, err := l.Balance(t.Context(), "acme", test.at)
		if err != nil {
			t.Fatal(err)
		}
		if b.Book.Used() != test.used || b.Book.Granted() != 100 {
			t.Errorf("at %s used %d of %d, want %d", test.at, b.Book.Used(), b.Book.Granted(), test.used)
		}
	}
	l.CheckSound(t)
}
