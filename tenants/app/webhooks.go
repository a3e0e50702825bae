package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// WebhookConfig is the keys that sign webhooks,
// and the private networks they may reach.
type WebhookConfig struct {
	Keys     httpapi.Secret `help:"Keys that the secrets of webhooks follow from, each of 64 hexadecimal characters (openssl rand -hex 32), with commas between them: the first makes new secrets, the others those of webhooks from when they were first. Empty: there are no webhooks." env:"WEIR_WEBHOOK_KEYS"`
	Networks []string       `help:"Networks beside the public one that webhooks may reach, by any port and without TLS, such as 10.20.0.0/16. For development, and for receivers of one's own." env:"WEIR_WEBHOOK_NETWORKS"`
	CAFile   string         `help:"File with certificates of authorities, in PEM, that webhooks trust beside the system's." env:"WEIR_WEBHOOK_CA_FILE"`
}

func (c WebhookConfig) validate() error {
	_, keys := c.keys()
	_, networks := c.networks()
	return errors.Join(keys, networks)
}

func (c WebhookConfig) keys() (webhook.Keys, error) {
	keys, err := webhook.ParseKeys(c.Keys)
	if err != nil {
		return keys, fmt.Errorf("WEIR_WEBHOOK_KEYS: %w", err)
	}
	return keys, nil
}

func (c WebhookConfig) networks() (networks []netip.Prefix, err error) {
	for _, text := range c.Networks {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("WEIR_WEBHOOK_NETWORKS has %q: use networks such as 10.20.0.0/16", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

func (c WebhookConfig) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil //nolint:nilnil // the system's
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read WEIR_WEBHOOK_CA_FILE: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("WEIR_WEBHOOK_CA_FILE %q has no certificate", c.CAFile)
	}
	return roots, nil
}

func (c WebhookConfig) client() (*webhook.Client, error) {
	networks, err := c.networks()
	if err != nil {
		return nil, err
	}
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	return webhook.NewClient(webhook.Config{Networks: networks, Roots: roots}), nil
}

// buildNotifications builds the consumers of
// facts and the sender of webhooks and mail.
func (a *App) buildNotifications() error {
	keys, err := a.config.Webhooks.keys()
	if err != nil {
		return err
	}
	client, err := a.config.Webhooks.client()
	if err != nil {
		return err
	}
	mailer, err := a.mailer()
	if err != nil {
		return err
	}
	a.webhooks = notifications.NewService(a.work, a.registry.Organizations, keys, client)
	a.sender = notifications.NewSender(notifications.SenderConfig{
		Pool: a.base.Pool, Work: a.work, Client: client, Keys: keys, Mailer: mailer, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
	a.deliveries = notifications.NewDeliveries(a.webhooks, a.sender)
	for topic, group := range map[string]string{contract.TopicLedger: contract.GroupTenantsLedger, contract.TopicGrouping: contract.GroupTenantsGrouping} {
		consumed, err := a.base.NewConsumer(a.factsOf(topic, group))
		if err != nil {
			return err
		}
		a.facts = append(a.facts, consumed)
	}
	return nil
}

func (a *App) factsOf(topic, group string) consumer.Config {
	return consumer.Config{
		Group: group, Topic: topic,
		AcceptLost: true, // facts expire, and nothing is rebuilt from them
		Handle:     bus.FactsConsumer{Deliver: notifications.Facts{Clock: a.base.Clock, Mail: a.config.Mail.configured()}.Deliver}.Consume,
		Committed:  func([]sharedbus.Record) { a.sender.Wake() },
	}
}

// notify consumes facts and sends what follows from them.
func (a *App) notify(ctx context.Context) error {
	loops := []func(context.Context) error{a.sender.Run, a.sender.Measure}
	for _, facts := range a.facts {
		loops = append(loops, facts.Run)
	}
	return lifecycle.Run(ctx, loops...)
}
