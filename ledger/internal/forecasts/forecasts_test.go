package forecasts_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/testenv"
)

// A forecast uses all complete days since the first use, empty ones
// too. Today counts in part.
func TestForecast(t *testing.T) {
	l := ledgertest.Acme(t)
	for _, day := range []int{-4, -3, -1, 0} { // of 20 November, noon
		l.SetClock(ledgertest.November.AddDate(0, 0, day))
		l.Book(t, l.NewCharge("acme", 8))
	}
	f, err := l.Forecasts.Forecast(t.Context(), "acme")
	testenv.Must(t, err)
	if f.Method != ledger.ByMean || f.Days != 4 || f.PerDay != 6 || f.Balance.Book.Used() != 32 || f.Used.Expected != 32+63 {
		t.Errorf("forecast %+v", f.Forecast)
	}
	l.Book(t, l.NewCharge("acme", 60))
	if f, err = l.Forecasts.Forecast(t.Context(), "acme"); err != nil || f.Runs.Expected != time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) { // 8 are left, 3 of them for today
		t.Errorf("forecast %+v, error %v", f.Forecast, err)
	}
}
