//! `sweepctl result process` of agentic jobs.

mod corpus;
