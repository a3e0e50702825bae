package forecasts

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// A Forecast is the expected usage of the running period, with its balance.
type Forecast struct {
	ledger.Forecast
	Balance balances.Balance
}

// Forecast makes the forecast of an organization's running period.
func (s *Service) Forecast(ctx context.Context, organization string) (found Forecast, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found.Balance, err = s.Balances.Running(ctx, tx, organization); err != nil {
			return err
		}
		found.Forecast, err = forecastOf(ctx, tx, found.Balance)
		return err
	})
	return found, err
}

func forecastOf(ctx context.Context, tx pgx.Tx, b balances.Balance) (ledger.Forecast, error) {
	today := b.At.UTC().Truncate(24 * time.Hour)
	days, err := usedByDay(ctx, tx, b.Organization.ID, today.AddDate(0, 0, -ledger.ForecastDays), today)
	if err != nil {
		return ledger.Forecast{}, err
	}
	return ledger.NewForecast(history(days, today), b.Book.Period, b.Book.Used(), b.Organization.Admits(b.Book, b.At), b.At), nil
}

// history returns the bytes of each day from the first used to yesterday.
func history(days []ledger.DayCharge, today time.Time) (bytes []int64) {
	if len(days) == 0 {
		return nil
	}
	bytes = make([]int64, int(today.Sub(days[0].Day)/(24*time.Hour)))
	for _, day := range days {
		bytes[int(day.Day.Sub(days[0].Day)/(24*time.Hour))] = day.Bytes
	}
	return bytes
}

// usedByDay returns the accepted bytes of each day in [from, to), the
// earliest first, without empty days.
func usedByDay(ctx context.Context, tx pgx.Tx, organization string, from, to time.Time) (days []ledger.DayCharge, err error) {
	query := postgres.UsageQuery{Bucket: postgres.ByDay, From: from, To: to, Limit: int(to.Sub(from)/(24*time.Hour)) + 1}
	uses, err := postgres.Usages(ctx, tx, pg.Organization(organization), query)
	for _, use := range slices.Backward(uses) {
		days = append(days, ledger.DayCharge{Day: use.Hour, Requests: use.Requests, Entries: use.Entries, Bytes: use.Bytes})
	}
	return days, err
}
