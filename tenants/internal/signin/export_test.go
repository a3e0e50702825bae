package signin

// ReplaceDevices is for tests of the table of devices.
var ReplaceDevices = replaceDevices
