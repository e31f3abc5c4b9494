"""The Streamlit app: screens over ``auditor``. Start it with ``streamlit run app/main.py``."""
