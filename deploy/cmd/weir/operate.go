package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/deploy/migrate"
	"github.com/weirlog/weir/deploy/provision"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/process"
)

type aclsCommand struct {
	Principal string `help:"How a program is called at the brokers: {program} becomes ingest, ledger, grouping, tenants, topics, doctor and resume." default:"User:{program}"`
	Apply     bool   `help:"Give the rights, as a user who may, instead of printing commands. What is given already stays."`
	Passwords string `help:"With --apply, make each program a user first, who signs in by SCRAM-SHA-512 with the password in the file PROGRAM_broker_password of this directory (weir provision makes them), or give it that password." type:"path"`

	PlaintextPasswords bool `help:"Let --passwords send over connections without TLS to other machines, for a network that nobody else can read: who reads the salted passwords can sign in by them."`

	Brokers      []string      `help:"Kafka brokers, host:port." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access    `embed:"" prefix:"brokers-"`
	Timeout      time.Duration `help:"How long to wait for the brokers." default:"30s"`
}

// Run prints commands of Apache Kafka's own tool, or grants the rights itself.
func (c *aclsCommand) Run(ctx context.Context, _ *slog.Logger) error {
	permissions := acls.Permissions(c.Principal)
	if !c.Apply {
		fmt.Fprintln(os.Stdout, strings.Join(acls.Commands(permissions), "\n"))
		return nil
	}
	if len(c.Brokers) == 0 {
		return errors.New("WEIR_BROKERS is not set: name the brokers that are to give the rights")
	}
	if err := c.refuseReaders(); err != nil {
		return err
	}
	dialer, err := c.BrokerAccess.Dialer()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if c.Passwords != "" {
		if err := c.users(ctx, dialer); err != nil {
			return err
		}
	}
	if err := cluster.Permit(ctx, c.Brokers, dialer, permissions); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "gave %d rights, as far as they were missing\n", len(permissions))
	return nil
}

// refuseReaders fails if a network could read the salted passwords.
func (c *aclsCommand) refuseReaders() error {
	if c.Passwords == "" || c.PlaintextPasswords || c.BrokerAccess.Encrypts() {
		return nil
	}
	for _, address := range c.Brokers {
		if !isLoopback(address) {
			return fmt.Errorf("--passwords would be sent to %q without TLS, and who reads them can sign in: "+
				"set WEIR_BROKERS_TLS or WEIR_BROKERS_CA_FILE, or --plaintext-passwords where nobody else can read the network", address)
		}
	}
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// users creates a user for each program.
func (c *aclsCommand) users(ctx context.Context, dialer *bus.Dialer) error {
	passwords := map[string]string{}
	for _, program := range acls.Programs() {
		password, err := process.SecretIn(filepath.Join(c.Passwords, provision.BrokerPassword(program)), "--passwords")
		if err != nil {
			return err
		}
		passwords[program] = password
	}
	if err := cluster.SetPasswords(ctx, c.Brokers, dialer, passwords); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "made %d users, or gave them their passwords\n", len(passwords))
	return nil
}

type topicsCommand struct {
	Brokers       []string      `help:"Kafka brokers, host:port." env:"WEIR_BROKERS" required:""`
	BrokerAccess  bus.Access    `embed:"" prefix:"brokers-"`
	LogPartitions int           `help:"Partitions of weir.logs.v1: how many consumers of one kind can share the work." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention  time.Duration `help:"How long weir.logs.v1 keeps records. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`
	Timeout       time.Duration `help:"How long to wait for the brokers." default:"30s"`
}

// Help is called by kong.
func (topicsCommand) Help() string {
	return `Topics that are there stay as they are.

  WEIR_BROKERS=kafka-1.example:9092,kafka-2.example:9092 weir topics`
}

// Run creates missing topics.
func (c *topicsCommand) Run(ctx context.Context, _ *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	dialer, err := c.BrokerAccess.Dialer()
	if err != nil {
		return err
	}
	all := contract.Topics(c.LogPartitions, c.LogRetention)
	if err := topics.EnsureWith(ctx, c.Brokers, dialer, all); err != nil {
		return err
	}
	for _, topic := range all {
		fmt.Fprintf(os.Stdout, "%-20s %d partitions, unless it existed\n", topic.Name, topic.Partitions)
	}
	return nil
}

const migrateHelp = `Brings the databases of modules up to date. It takes the variables that the services take, and for each module the address for
the role that owns its schema:

  WEIR_LEDGER_DATABASE_URL           the role that serves (or WEIR_DATABASE_URL, for all modules)
  WEIR_LEDGER_MIGRATE_DATABASE_URL   the role that owns the schema (or WEIR_MIGRATE_DATABASE_URL)

Each may stand in a file that the variable with _FILE names. The first gets exactly the rights that serving needs. Where the second is not set, the first
owns the schema and does both, as services then do at their start by themselves. It may run again, and beside services.`

type migrateCommand struct {
	migrate.Config `embed:""`
}

// Help is called by kong.
func (migrateCommand) Help() string { return migrateHelp }

// Run brings the databases up to date.
func (m *migrateCommand) Run(ctx context.Context) error { return migrate.Run(ctx, m.Config, os.Stdout) }

type provisionCommand struct {
	Dir      string   `arg:"" help:"Directory of the secrets."`
	Hosts    []string `help:"Names and addresses that the certificate is for, beside localhost." default:"gateway,ingest,ledger,grouping,tenants"`
	Postgres string   `help:"Host of the PostgreSQL server, and its port where it is not 5432." default:"postgres"`
}

// Help is called by kong.
func (provisionCommand) Help() string {
	return `Makes a file for each secret of an installation: certificates of an authority of its own, tokens, keys, passwords, and the script of
the databases. What is there stays. To replace a secret, change or remove its file, and make up again.

  weir provision secrets --postgres db.example       then psql --file=secrets/roles.sql makes roles and databases`
}

// Run creates what is missing.
func (p *provisionCommand) Run() error {
	return provision.Ensure(p.Dir, p.Postgres, time.Now(), p.Hosts...)
}
