package replica

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

// URLVariable is the setting for the address of the replica.
const URLVariable = "WEIR_REPLICA_DATABASE_URL"

// Config is a replica's address, and how long reads wait for it.
type Config struct {
	DatabaseURL httpapi.Secret `help:"Postgres URL of a standby that answers what is heavy to read. Empty: the database itself does." env:"WEIR_REPLICA_DATABASE_URL" default:""`
	Wait        time.Duration  `help:"How long such a read waits until the standby is reached and has all that the database has; then the database answers." env:"WEIR_REPLICA_WAIT" default:"500ms"`
}

const defaultWait = 500 * time.Millisecond

// Validate returns what is wrong with the settings. It shows no secret.
func (c Config) Validate() error {
	var errs []error
	if c.DatabaseURL != "" {
		errs = append(errs, process.CheckDatabaseURL(URLVariable, c.DatabaseURL.Reveal()))
	}
	if c.Wait < 0 {
		errs = append(errs, fmt.Errorf("WEIR_REPLICA_WAIT is %s: it can't be negative", c.Wait))
	}
	return errors.Join(errs...)
}

func (c Config) wait() time.Duration { return cmp.Or(c.Wait, defaultWait) }
