package gap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// What a ledger that was stopped for a day leaves at 10,000 records a second.
const (
	dayPartitions = 12
	dayOffsets    = 864_000_000 / dayPartitions
)

var dayTopic = [16]byte{1}

// saveDay saves the stretches of such a day, each of which has requests of all organizations.
func saveDay(b *testing.B, pool *pgxpool.Pool, organizations int) {
	b.Helper()
	err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(b.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(b.Context(), `INSERT INTO gap_stretches SELECT $1, p, s FROM generate_series(0, $2 - 1) p, generate_series(0, $3 - 1) s`,
			dayTopic, dayPartitions, dayOffsets/ingest.StretchOffsets)
		if err != nil {
			return err
		}
		_, err = tx.Exec(b.Context(), `INSERT INTO gap_charges (topic, partition, stretch, organization, day, bytes)
			SELECT $1, p, s, 'org_' || o, date '2026-11-21' + s / ($3 / 2), 1000 FROM generate_series(0, $2 - 1) p, generate_series(0, $3 - 1) s, generate_series(1, $4) o`,
			dayTopic, dayPartitions, dayOffsets/ingest.StretchOffsets, organizations)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDay is a start beside a ledger that was stopped for a day at 10,000 records a second: what is summed up comes from the database, and
// two stretches of each partition, which is the most that is left, from the log.
func BenchmarkDay(b *testing.B) {
	brokers := testenv.Kafka(b)
	const unsummed = dayPartitions * 2 * ingest.StretchOffsets
	fill(b, brokers, unsummed, make([]byte, 700))
	for _, organizations := range []int{100, 300} {
		b.Run(fmt.Sprintf("organizations=%d", organizations), func(b *testing.B) {
			g, pool := newGap(b, brokers)
			saveDay(b, pool, organizations)
			counted, ends := ingest.Positions{}, ingest.Positions{}
			for p := range dayPartitions {
				counted[p], ends[p] = 1, dayOffsets
			}
			b.ResetTimer()
			for b.Loop() {
				begun := time.Now()
				charges, left, err := g.SummedForTest(b.Context(), dayTopic, counted, ends)
				sums := time.Since(begun)
				if err != nil || left > unsummed {
					b.Fatal(left, err)
				}
				read, err := g.Read(b.Context(), nil)
				if err != nil || len(read) != unsummed {
					b.Fatal(len(read), err)
				}
				b.ReportMetric(float64(len(charges)), "charges")
				b.ReportMetric(sums.Seconds(), "s-sums")
				b.ReportMetric(time.Since(begun).Seconds(), "s-to-ready")
			}
		})
	}
}
