package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/weirlog/weir/deploy/capacity"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

const sizeHelp = `Estimates how large an installation has to be, and what it costs:

  weir size --entries-per-second=10000 --bytes=400 --retention=30d
  weir size --entries-per-second=350000 --batch=1000 --transfers-months=3
  weir size --entries-per-second=2000 --core-price=25 --disk-price=0.08

It reaches nothing. The coefficients are those of deploy/docs/size.md, measured on 2 cores: try yours before you buy.`

type sizeCommand struct {
	EntriesPerSecond float64 `help:"Log entries per second, on average over a day." required:""`
	Bytes            float64 `help:"Bytes of an entry as JSON, on average." default:"325"`
	Retention        string  `help:"For how long entries are kept, such as 30d." default:"30d"`
	Peak             float64 `help:"The busiest minute, as a multiple of the average." default:"3"`
	Batch            float64 `help:"Entries of a request." default:"100"`
	LogRetention     string  `help:"For how long Kafka keeps entries: WEIR_LOG_RETENTION." default:"7d"`
	TransfersMonths  float64 `help:"For how many months the ledger keeps transfers: WEIR_LEDGER_TRANSFERS_MONTHS." default:"25"`
	CorePrice        float64 `help:"Price of a core with 4 GB of memory, a month." default:"30"`
	DiskPrice        float64 `help:"Price of a GB of SSD, a month." default:"0.1"`
	ObjectPrice      float64 `help:"Price of a GB of object storage, a month." default:"0.025"`
	JSON             bool    `name:"json" help:"Print one object."`
}

// Help is called by kong.
func (sizeCommand) Help() string { return sizeHelp }

// Run prints what is needed.
func (s *sizeCommand) Run() error { return s.write(terminal.Of(os.Stdout)) }

func (s *sizeCommand) write(screen terminal.Screen) error {
	load := capacity.Load{EntriesPerSecond: s.EntriesPerSecond, EntryBytes: s.Bytes, Peak: s.Peak, Batch: s.Batch, TransferMonths: s.TransfersMonths}
	var err error
	if load.RetentionDays, err = days("--retention", s.Retention); err != nil {
		return err
	}
	if load.LogDays, err = days("--log-retention", s.LogRetention); err != nil {
		return err
	}
	if err := load.Validate(); err != nil {
		return err
	}
	prices := capacity.Prices{Core: s.CorePrice, Disk: s.DiskPrice, Object: s.ObjectPrice}
	if err := prices.Validate(); err != nil {
		return err
	}
	plan := capacity.Measured.For(load)
	price := prices.Price(plan)
	if s.JSON {
		text, err := json.Marshal(struct {
			capacity.Plan
			Price float64 `json:"price_per_month"`
		}{plan, price})
		if err != nil {
			return err
		}
		return screen.JSON(text)
	}
	return s.print(screen, load, plan, price)
}

// days reads a number of days, such as 30d.
func days(flag, text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "d"), 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s=%s is no number of days; write it as 30d", flag, text)
	}
	return n, nil
}

func (s *sizeCommand) print(screen terminal.Screen, load capacity.Load, plan capacity.Plan, price float64) error {
	rows := [][]string{
		row("gateway and services", plan.Services, "one of each program on each machine"),
		row("Kafka", plan.Brokers, fmt.Sprintf("%d partitions, 3 copies, %gd", plan.Partitions, load.LogDays)),
		row("PostgreSQL", plan.Postgres, fmt.Sprintf("one is a standby; the ledger has %s of the disk", bytesOf(plan.Ledger))),
	}
	if plan.ClickHouse.Count > 0 {
		rows = append(rows, row("ClickHouse", plan.ClickHouse, fmt.Sprintf("2 copies, and %s in object storage", bytesOf(plan.Objects))))
	}
	each := load.EntriesPerSecond / float64(plan.Installations)
	if plan.Installations > 1 {
		fmt.Fprintf(screen, "More than one PostgreSQL server holds: split organizations among %d installations. Each gets\n", plan.Installations)
	}
	fmt.Fprintf(screen, "%s entries a second, %s at the peak, %s a day, kept for %gd.\n\n",
		ui.Count(roundUp(each)), ui.Count(roundUp(each*load.Peak)), bytesOf(plan.PerDay), load.RetentionDays)
	if err := screen.Table([]string{"FOR", "MACHINES", "CORES", "MEMORY", "DISK", "NOTE"}, rows); err != nil {
		return err
	}
	text := fmt.Sprintf("\nPostgreSQL alone holds up to %s entries a second", ui.Count(int64(plan.MaxEntries)))
	if plan.ClickHouse.Count > 0 {
		text += ": here it keeps two days, and older entries move to ClickHouse.\n"
	} else {
		text += "; beyond that, older entries move to ClickHouse.\n"
	}
	if plan.Ledger > plan.Postgres.Disk/3 {
		text += "The ledger needs much of its disk: send larger batches, or keep transfers for fewer months.\n"
	}
	_, err := fmt.Fprintf(screen, "%sAll costs about %s a month, without traffic between places.\n", text, ui.Count(int64(price)))
	return err
}

func row(name string, m capacity.Machines, note string) []string {
	disk := "-"
	if m.Disk > 0 {
		disk = bytesOf(m.Disk)
	}
	return []string{name, strconv.Itoa(m.Count), strconv.Itoa(m.Cores), bytesOf(m.Memory), disk, note}
}

func roundUp(n float64) int64 { return int64(math.Ceil(n)) }

func bytesOf(n float64) string { return ui.Bytes(int64(n)) }
