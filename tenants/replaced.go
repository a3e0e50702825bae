package tenants

// ReplacedEvents are one of each type of event, empty, that a later one of the same stream replaces: it sets all that the earlier one did, whatever that
// was, so nothing is lost with the earlier ones once nobody asks what the thing was like between them.
func ReplacedEvents() []Event {
	return []Event{
		OrganizationRenamed{}, ProjectRenamed{}, SecurityPolicySet{},
		APIKeyRenamed{}, APIKeyLimited{}, APIKeyAccessChanged{},
		MemberRoleChanged{}, MemberResetCodeIssued{}, MemberIdentified{},
		PasskeyUsed{}, WebhookChanged{}, WebhookSwitched{},
	}
}
