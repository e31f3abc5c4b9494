"""Under way."""

import streamlit as st

st.title("verify")
