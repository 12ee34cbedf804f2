package agent

// ListenTLSFor is ListenTLS with another limit to an agent's silence.
var ListenTLSFor = listenTLS

// MaxStrangers is how many connections without a token there may be.
const MaxStrangers = maxStrangers
