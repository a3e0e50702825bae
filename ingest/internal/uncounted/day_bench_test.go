package uncounted_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/uncounted"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// What a ledger that was stopped for a day leaves at 10,000 records a second.
const (
	dayPartitions = 12
	dayOffsets    = 864_000_000 / dayPartitions
)

var dayTopic = [16]byte{1}

// saveDay saves what such a day comes to, as Sum leaves it. A project's
// requests, large ones excepted, lie in one partition: the more organizations,
// the fewer partitions have requests of each.
func saveDay(b *testing.B, pool *pgxpool.Pool, organizations, partitionsOfEach int) {
	b.Helper()
	const stretches = dayOffsets / ingest.StretchOffsets
	runs := min(uncounted.MaxRunsForTest, max(uncounted.MinRunsForTest, uncounted.MaxRowsForTest/(organizations*partitionsOfEach)))
	err := pg.InTxAsSystem(b.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.Context(), `INSERT INTO gap_runs SELECT $1, p, r * $3 / $4, (r + 1) * $3 / $4
			FROM generate_series(0, $2 - 1) p, generate_series(0, $4::bigint - 1) r`,
			dayTopic, dayPartitions, stretches, runs)
		if err != nil {
			return err
		}
		_, err = tx.Exec(b.Context(), `INSERT INTO gap_charges (topic, partition, first, organization, day, bytes)
			SELECT $1, partition, first, 'org_' || o, date '2026-11-21' + (2 * first / $3)::int, 1000 FROM gap_runs, generate_series(1, $4) o
			WHERE (o + partition) % $2 < $5`,
			dayTopic, dayPartitions, stretches, organizations, partitionsOfEach)
		return err
	})
	testenv.Must(b, err)
}

// BenchmarkDay starts beside a ledger that was stopped for a day at 10,000
// records a second: what is summed up comes from the database, and at most two
// stretches of each partition from the log.
func BenchmarkDay(b *testing.B) {
	brokers := kafkatest.Brokers(b)
	const unsummed = dayPartitions * 2 * ingest.StretchOffsets
	fill(b, brokers, unsummed, make([]byte, 700))
	for _, day := range []struct{ organizations, partitionsOfEach int }{{100, 12}, {1_000, 12}, {10_000, 1}, {10_000, 12}} {
		b.Run(fmt.Sprintf("organizations=%d/partitions=%d", day.organizations, day.partitionsOfEach), func(b *testing.B) {
			g, pool := newReader(b, brokers)
			saveDay(b, pool, day.organizations, day.partitionsOfEach)
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
