package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A fold whose connection is killed before the commit changes nothing.
// Another folds the day once, and the books agree before and after.
func TestFoldIsKilled(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	for range 5 {
		l.chargeRange(t, "acme", 10, l.Now())
	}
	whole := l.count(t, "transfers")
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	fold := postgres.Tables(l.Now, ledger.DefaultRetention(), erasure.Retention{})[0]
	err := l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if folded, _, err := fold.Prune(ctx, tx); err != nil || folded != 1 {
			t.Fatal(folded, err)
		}
		_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	if err == nil {
		t.Fatal("the fold was not killed")
	}
	if n, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); n != whole || sums != 0 {
		t.Errorf("%d of %d transfers are left, and %d sums", n, whole, sums)
	}
	l.CheckSound(t)
	for range 2 {
		l.prune(t)
		if n, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); n != 0 || sums == 0 {
			t.Errorf("after a fold %d transfers are left, and %d sums", n, sums)
		}
		l.CheckSound(t)
	}
}

// foldedDatabase names the database of the process to kill.
const foldedDatabase = "WEIR_TEST_FOLDED_DATABASE"

// The same when SIGKILL ends the whole process.
func TestFoldingProcessIsKilled(t *testing.T) {
	url := os.Getenv(foldedDatabase)
	if url != "" {
		foldAndWait(t, openLedger(t, url))
		return
	}
	url = pgtest.URL(t, postgres.Schema, postgres.Migrations()...)
	l := checkedLedger{ledgertest.On(t, openLedger(t, url))}
	l.Start(t, "acme", ledger.Scale)
	l.chargeRange(t, "acme", 10, l.Now())
	whole := l.count(t, "transfers")
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	killWhenFolded(t, url)
	if n, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); n != whole || sums != 0 {
		t.Errorf("%d of %d transfers are left, and %d sums", n, whole, sums)
	}
	l.CheckSound(t)
	testenv.Eventually(t, func() error { // the server may hold the locks of the dead a moment longer
		fold := postgres.Tables(l.Now, ledger.DefaultRetention(), erasure.Retention{})[0]
		return l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			_, _, err := fold.Prune(ctx, tx)
			return err
		})
	})
	l.prune(t)
	if n, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); n != 0 || sums == 0 {
		t.Errorf("after a fold %d transfers are left, and %d sums", n, sums)
	}
	l.CheckSound(t)
}

func openLedger(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), url, postgres.Schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// foldAndWait folds a day and blocks before the commit.
func foldAndWait(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	l := ledgertest.On(t, pool)
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		folded, _, err := postgres.Tables(l.Now, ledger.DefaultRetention(), erasure.Retention{})[0].Prune(ctx, tx)
		fmt.Println("folded", folded)
		if err == nil {
			_, err = bufio.NewReader(os.Stdin).ReadByte()
		}
		return err
	})
}

// killWhenFolded kills another process of this test once it has folded a day.
func killWhenFolded(t *testing.T, url string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), foldedDatabase+"="+url)
	in, err := child.StdinPipe() // blocks the child: nothing is ever written
	testenv.Must(t, err)
	defer in.Close()
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	testenv.Must(t, err)
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "folded 1" {
		t.Log(lines.Text())
	}
	last := lines.Text()
	if err := child.Process.Kill(); err != nil || last != "folded 1" {
		t.Fatalf("the last line of the other process is %q; %v", last, err)
	}
	_ = child.Wait() // it was killed
}
