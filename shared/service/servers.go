package service

import (
	"errors"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

// Servers are the brokers and the database of a service.
// A program that only reads its data needs nothing else.
type Servers struct {
	Brokers      []string       `help:"Kafka brokers, host:port." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access     `embed:"" prefix:"brokers-"`
	DatabaseURL  httpapi.Secret `help:"URL of the service's Postgres database, such as postgres://user:password@host/database." env:"WEIR_DATABASE_URL" default:""`
}

// Validate joins what is wrong with the addresses. It shows no secret.
func (s Servers) Validate() error {
	return errors.Join(process.CheckBrokers(s.Brokers), s.BrokerAccess.Validate(), process.CheckDatabaseURL("WEIR_DATABASE_URL", s.DatabaseURL.Reveal()))
}
